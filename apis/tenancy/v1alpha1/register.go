package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of the types of this package.
const GroupName = "tenancy.kedge.faros.sh"

// SchemeGroupVersion is the group and version of every object in this package.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

var schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme registers the types of this package with a scheme.
var AddToScheme = schemeBuilder.AddToScheme

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&User{}, &UserList{},
		&Organization{}, &OrganizationList{},
		&Membership{}, &MembershipList{},
		&UserMembershipIndex{}, &UserMembershipIndexList{},
		&CatalogEntry{}, &CatalogEntryList{},
		&Session{}, &SessionList{},
		&Bot{}, &BotList{},
		&Invitation{}, &InvitationList{},
		&AccessRequest{}, &AccessRequestList{},
	)
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}

package tenancy

import (
	"cmp"
	"slices"
	"strings"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// ManagedByHub reports whether an object has the label of the hub's derived objects.
func ManagedByHub(o metav1.Object) bool {
	return o.GetLabels()[v1alpha1.ManagedByLabel] == v1alpha1.ManagedByHub
}

// AllowedSubjects are the subjects that may stay in a binding which the hub did not
// make: what the policy allows in a binding of that namespace, and the hub, which kcp binds
// as the creator of the Workspace. namespace is empty for a ClusterRoleBinding.
func (p Policy) AllowedSubjects(namespace string, subjects []rbacv1.Subject) []rbacv1.Subject {
	return slices.DeleteFunc(slices.Clone(subjects), func(s rbacv1.Subject) bool {
		switch s.Kind {
		case rbacv1.ServiceAccountKind:
			return IsUUID(s.Name) && cmp.Or(s.Namespace, namespace) == DefaultNamespace
		case rbacv1.GroupKind:
			return !strings.HasPrefix(s.Name, groupAccounts+":") || slices.Contains(botGroups(), s.Name)
		}
		return !slices.Contains(p.hubUsers, s.Name)
	})
}

// ForbiddenBinding reports whether a Workspace must not have an APIBinding at all.
func ForbiddenBinding(b *kcpapisv1alpha2.APIBinding) bool {
	export := b.Spec.Reference.Export
	return export != nil && slices.Contains([]string{exportKCPTenancy, exportKCPTopology, ExportTenancy}, export.Name)
}

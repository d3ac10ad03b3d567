package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// DefaultAccess is what an Org's members may do in Workspaces that they are no
// members of.
//
// +kubebuilder:validation:Enum=none;view
type DefaultAccess string

// The values of DefaultAccess.
const (
	DefaultAccessNone DefaultAccess = "none"
	DefaultAccessView DefaultAccess = "view"
)

// Organization holds Workspaces. Its name is a UUID (O-1), which is also the
// name of its kcp Workspace.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=org
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$')",message="an Organization's name is a UUID in canonical lower case"
// +kubebuilder:printcolumn:name="Display name",type=string,JSONPath=`.spec.displayName`
// +kubebuilder:printcolumn:name="Personal",type=boolean,JSONPath=`.spec.personal`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Organization struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec OrganizationSpec `json:"spec"`
	// +optional
	Status OrganizationStatus `json:"status,omitempty"`
}

// OrganizationSpec is what an Org's admins decide.
//
// +kubebuilder:validation:XValidation:rule="(has(self.personal) ? self.personal : false) == (has(oldSelf.personal) ? oldSelf.personal : false)",message="personal is immutable"
type OrganizationSpec struct {
	// displayName may repeat and may change (O-1).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	DisplayName string `json:"displayName"`
	// personal marks the Org that the hub made for one person.
	// +optional
	Personal bool `json:"personal,omitempty"`
	// workspaceCreation says who may create Workspaces (O-7).
	// +optional
	// +kubebuilder:default=members
	WorkspaceCreation Who `json:"workspaceCreation,omitempty"`
	// catalogEntryCreation says who may publish CatalogEntries (O-7).
	// +optional
	// +kubebuilder:default=members
	CatalogEntryCreation Who `json:"catalogEntryCreation,omitempty"`
	// workspaceQuota overrides the number of Workspaces in the Org (O-6);
	// 0 or absent means the default.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5000
	WorkspaceQuota int32 `json:"workspaceQuota,omitempty"`
	// workspaceClaims are the Workspaces that count against the quota.
	// +optional
	// +listType=map
	// +listMapKey=uuid
	// +kubebuilder:validation:MaxItems=10000
	WorkspaceClaims []Claim `json:"workspaceClaims,omitempty"`
	// membershipChanges are removals and demotions of members that were decided
	// and are being carried out (O-9).
	// +optional
	// +listType=map
	// +listMapKey=user
	// +kubebuilder:validation:MaxItems=1000
	MembershipChanges []MembershipChange `json:"membershipChanges,omitempty"`
	// defaultAccess is what members may do in every Workspace of the Org.
	// +optional
	// +kubebuilder:default=none
	DefaultAccess DefaultAccess `json:"defaultAccess,omitempty"`
	// billing is free key/values plus the cost center.
	// +optional
	Billing *Billing `json:"billing,omitempty"`
}

// MembershipChange takes rights of a member of the Org away. It is written to the
// Organization first, so that of several at the same time each knows of the
// others, and is carried out from there whatever happens in between.
type MembershipChange struct {
	// user names the User whose Membership in the Org changes.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	User string `json:"user"`
	// uid and generation are those of the Membership that was looked at; a newer
	// one is left alone.
	UID types.UID `json:"uid"`
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// role is the new one; without it the Membership is removed.
	// +optional
	Role Role `json:"role,omitempty"`
	// cascade also removes the User's Memberships in Workspaces of the Org, first.
	// +optional
	Cascade bool `json:"cascade,omitempty"`
	// requestedAt is when it was decided.
	RequestedAt metav1.MicroTime `json:"requestedAt"`
}

// Billing says who pays for an Org.
type Billing struct {
	// costCenter is the account that the Org is charged to.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	CostCenter string `json:"costCenter,omitempty"`
	// labels are free key/values.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() >= 1 && k.size() <= 63)",message="billing label keys have 1 to 63 characters"
	Labels map[string]BillingValue `json:"labels,omitempty"`
}

// BillingValue is the value of a billing label.
//
// +kubebuilder:validation:MaxLength=256
type BillingValue string

// OrganizationStatus is what the hub found and made for an Org.
type OrganizationStatus struct {
	CommonStatus `json:",inline"`
	// workspacePath is the path of the Org's kcp Workspace.
	// +optional
	WorkspacePath string `json:"workspacePath,omitempty"`
	// deletionRequestedAt is set while the Org is soft-deleted (O-13).
	// +optional
	DeletionRequestedAt *metav1.Time `json:"deletionRequestedAt,omitempty"`
}

// OrganizationList is a list of Organizations.
//
// +kubebuilder:object:root=true
type OrganizationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Organization `json:"items"`
}

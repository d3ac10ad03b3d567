package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// UserMembershipIndex lists the Organizations and Workspaces of one User, with what a
// client needs to render a switcher. It has the name of the User. The hub derives it from
// Memberships and restores it after any other change.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=usermembershipindexes,scope=Cluster,shortName=umi
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type UserMembershipIndex struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec holds the rows. Set by the hub.
	Spec UserMembershipIndexSpec `json:"spec"`
}

// UserMembershipIndexSpec holds the rows of a UserMembershipIndex.
type UserMembershipIndexSpec struct {
	// entries has one row per Membership, sorted by orgUUID and workspaceUUID. The row of
	// an Organization comes before those of its Workspaces.
	// +optional
	// +listType=atomic
	Entries []MembershipIndexEntry `json:"entries,omitempty"`
}

// MembershipIndexEntry is one row: the Membership of an Organization, or of a Workspace
// if workspaceUUID is set.
type MembershipIndexEntry struct {
	// orgUUID is the UUID of the Organization.
	OrgUUID string `json:"orgUUID"`
	// orgDisplayName is the display name of the Organization.
	OrgDisplayName string `json:"orgDisplayName"`
	// orgCreatedAt is the creation time of the Organization.
	OrgCreatedAt metav1.Time `json:"orgCreatedAt"`
	// orgFirstAdmin is the metadata.name of the User who was the first admin of the
	// Organization.
	// +optional
	OrgFirstAdmin string `json:"orgFirstAdmin,omitempty"`
	// workspaceUUID is the UUID of the Workspace. Empty in the row of an Organization.
	// +optional
	WorkspaceUUID string `json:"workspaceUUID,omitempty"`
	// workspaceDisplayName is the display name of the Workspace. Empty in the row of an
	// Organization.
	// +optional
	WorkspaceDisplayName string `json:"workspaceDisplayName,omitempty"`
	// clusterID is the ID of the logical cluster of the Workspace. Empty in the row of an
	// Organization, and until kcp has scheduled the Workspace.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// role is the role of the User in the Organization or Workspace of the row: admin, member or
	// viewer. Absent for a manager without one.
	// +optional
	Role Role `json:"role,omitempty"`
	// manager is true for a manager of the Workspace of the row.
	// +optional
	Manager bool `json:"manager,omitempty"`
	// personal is spec.personal of the Organization.
	// +optional
	Personal bool `json:"personal,omitempty"`
	// softDeletedAt is the time at which deletion of the Organization or Workspace was
	// requested. It is set while it is soft-deleted or being removed.
	// +optional
	SoftDeletedAt *metav1.Time `json:"softDeletedAt,omitempty"`
}

// UserMembershipIndexList is a list of UserMembershipIndexes.
//
// +kubebuilder:object:root=true
type UserMembershipIndexList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []UserMembershipIndex `json:"items"`
}

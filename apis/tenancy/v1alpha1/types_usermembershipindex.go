package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// UserMembershipIndex is what one User's switcher shows (O-3, O-4). It is
// derived from Memberships and is named after the User.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=usermembershipindexes,scope=Cluster,shortName=umi
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type UserMembershipIndex struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec UserMembershipIndexSpec `json:"spec"`
}

// UserMembershipIndexSpec holds the rows of the switcher.
type UserMembershipIndexSpec struct {
	// entries are sorted by Org, the Org's own row first, then by Workspace.
	// +optional
	// +listType=atomic
	Entries []MembershipIndexEntry `json:"entries,omitempty"`
}

// MembershipIndexEntry is one row: an Org, or a Workspace where workspaceUUID is
// given.
type MembershipIndexEntry struct {
	// orgUUID names the Org.
	OrgUUID string `json:"orgUUID"`
	// orgDisplayName is the Org's display name.
	OrgDisplayName string `json:"orgDisplayName"`
	// orgCreatedAt is when the Org was created.
	OrgCreatedAt metav1.Time `json:"orgCreatedAt"`
	// orgFirstAdmin is the name of the User who was the Org's first admin.
	// +optional
	OrgFirstAdmin string `json:"orgFirstAdmin,omitempty"`
	// workspaceUUID names the Workspace; empty in the row of an Org.
	// +optional
	WorkspaceUUID string `json:"workspaceUUID,omitempty"`
	// workspaceDisplayName is the Workspace's display name.
	// +optional
	WorkspaceDisplayName string `json:"workspaceDisplayName,omitempty"`
	// clusterID is the ID of the Workspace's logical cluster.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// role is the User's role in the row's Org or Workspace.
	Role Role `json:"role"`
	// personal mirrors the Org's spec.personal.
	// +optional
	Personal bool `json:"personal,omitempty"`
	// softDeletedAt is set while the row's Org or Workspace is soft-deleted.
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

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// DefaultAccess is the access that members of an Organization have to Workspaces of it
// in which they have no Membership: none, or view for read access without Secrets.
//
// +kubebuilder:validation:Enum=none;view
type DefaultAccess string

// The values of DefaultAccess.
const (
	// DefaultAccessNone gives no access.
	DefaultAccessNone DefaultAccess = "none"
	// DefaultAccessView gives read access, without Secrets.
	DefaultAccessView DefaultAccess = "view"
)

// Organization groups people and Workspaces. Its name is a UUID in canonical lower
// case, which is also the name of its kcp Workspace.
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

	// spec is the desired state of the Organization.
	Spec OrganizationSpec `json:"spec"`
	// status is the observed state of the Organization. Set by the hub.
	// +optional
	Status OrganizationStatus `json:"status,omitempty"`
}

// OrganizationSpec is the desired state of an Organization.
//
// +kubebuilder:validation:XValidation:rule="(has(self.personal) ? self.personal : false) == (has(oldSelf.personal) ? oldSelf.personal : false)",message="personal is immutable"
type OrganizationSpec struct {
	// displayName is the name shown to people, 1 to 128 characters. It need not be unique
	// and can be changed at any time.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	DisplayName string `json:"displayName"`
	// description says what the Organization is for, at most 1024 characters. Absent for none.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Description string `json:"description,omitempty"`
	// personal marks the Organization that the hub created for one User at sign-up. Only
	// that User can delete it. Set by the hub. Defaults to false. Immutable.
	// +optional
	Personal bool `json:"personal,omitempty"`
	// workspaceCreation selects who may create Workspaces in the Organization: members or
	// admin. Defaults to members.
	// +optional
	// +kubebuilder:default=members
	WorkspaceCreation Who `json:"workspaceCreation,omitempty"`
	// catalogEntryCreation selects who may publish CatalogEntries in the Organization:
	// members or admin. Defaults to members.
	// +optional
	// +kubebuilder:default=members
	CatalogEntryCreation Who `json:"catalogEntryCreation,omitempty"`
	// workspaceQuota is the highest number of Workspaces in the Organization,
	// soft-deleted ones included. 0 or absent means the hub's default
	// (--default-workspace-quota). Set by platform admins.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5000
	WorkspaceQuota int32 `json:"workspaceQuota,omitempty"`
	// storage has the limits of what the Organization stores, where they differ from the hub's
	// (--org-bytes and --workspace-*). Set by platform admins.
	// +optional
	Storage *StorageLimits `json:"storage,omitempty"`
	// workspaceClaims are the Workspaces that count against the quota, those still to be
	// created included. Set by the hub.
	// +optional
	// +listType=map
	// +listMapKey=uuid
	// +kubebuilder:validation:MaxItems=10000
	WorkspaceClaims []Claim `json:"workspaceClaims,omitempty"`
	// membershipChanges are the changes of Memberships that were accepted and are being
	// carried out, in the order in which they were accepted. Set by the hub.
	// +optional
	// +listType=map
	// +listMapKey=user
	// +listMapKey=workspace
	// +kubebuilder:validation:MaxItems=1000
	MembershipChanges []MembershipChange `json:"membershipChanges,omitempty"`
	// botChanges are the new Bots, and the changes of Bots that raise their role or add a trust
	// rule, that were accepted and are being carried out, in the order in which they were accepted. Set by
	// the hub.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1000
	BotChanges []BotChange `json:"botChanges,omitempty"`
	// invitationChanges are the new Invitations, and the answers to Invitations, that were
	// accepted and are being carried out. Set by the hub.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=500
	InvitationChanges []InvitationChange `json:"invitationChanges,omitempty"`
	// requestChanges are the new AccessRequests, and the decisions about AccessRequests, that were accepted
	// and are being carried out. Set by the hub.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=500
	RequestChanges []RequestChange `json:"requestChanges,omitempty"`
	// defaultAccess is the access that members of the Organization have to each Workspace
	// in which they have no Membership: none or view. Defaults to none.
	// +optional
	// +kubebuilder:default=none
	DefaultAccess DefaultAccess `json:"defaultAccess,omitempty"`
	// groups let the members of groups of the identity provider in. Each gives a part of the Memberships
	// of these people, as long as their newest credential has the group.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=50
	Groups []GroupMapping `json:"groups,omitempty"`
	// billing holds billing metadata. The hub stores it and does not interpret it.
	// +optional
	Billing *Billing `json:"billing,omitempty"`
	// workspaceBilling is what an admin gave all Workspaces at once. It is the billing of every
	// Workspace whose own has a lower revision. Set by the hub.
	// +optional
	WorkspaceBilling *RevisedBilling `json:"workspaceBilling,omitempty"`
}

// GroupMapping gives the members of a group of the identity provider a role in an Organization or Workspace.
type GroupMapping struct {
	// id is a UUID.
	// +kubebuilder:validation:MaxLength=36
	ID string `json:"id"`
	// group is the name of the group with the prefix that the hub gives it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Group string `json:"group"`
	// workspace is the UUID of the Workspace. Absent for the Organization.
	// +optional
	// +kubebuilder:validation:MaxLength=36
	Workspace string `json:"workspace,omitempty"`
	// role is the role that each of these people gets.
	Role Role `json:"role"`
	// createdBy is the metadata.name of the User who made the mapping.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	CreatedBy string `json:"createdBy,omitempty"`
	// createdAt is the time at which it was made.
	CreatedAt metav1.Time `json:"createdAt"`
}

// StorageLimits are limits of what an Organization stores. 0 or absent means that of the hub.
type StorageLimits struct {
	// bytes is the size of all objects in the Workspaces of the Organization (--org-bytes).
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1099511627776
	Bytes int64 `json:"bytes,omitempty"`
	// workspaceBytes is the size of all objects of each Workspace (--workspace-bytes).
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1099511627776
	WorkspaceBytes int64 `json:"workspaceBytes,omitempty"`
	// workspaceObjects is the number of objects of each Workspace (--workspace-objects).
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000000
	WorkspaceObjects int64 `json:"workspaceObjects,omitempty"`
	// workspaceCRDs is the number of CustomResourceDefinitions of each Workspace
	// (--workspace-crds).
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	WorkspaceCRDs int64 `json:"workspaceCRDs,omitempty"`
	// workspaceAPIBindings is the number of APIBindings of each Workspace
	// (--workspace-apibindings).
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	WorkspaceAPIBindings int64 `json:"workspaceAPIBindings,omitempty"`
	// workspaceRoles is the number of Roles, ClusterRoles and Namespaces of each Workspace together
	// (--workspace-roles).
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	WorkspaceRoles int64 `json:"workspaceRoles,omitempty"`
}

// MembershipChange is an accepted change of one Membership: a new one, another role, or its
// removal. It is recorded on the Organization before any Membership changes. So what gives
// rights and what takes them away have one order, concurrent requests cannot remove the last
// admin, and an interrupted change is resumed.
type MembershipChange struct {
	// user is the metadata.name of the User whose Membership changes.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	User string `json:"user"`
	// workspace is the UUID of the Workspace that the Membership is of. Absent for a
	// Membership of the Organization.
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=36
	Workspace string `json:"workspace,omitempty"`
	// uid is the metadata.uid of the Membership that the change is for. A Membership with
	// another uid is not changed. Absent means that the Membership is created.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// generation is the metadata.generation of the Membership that the change is for. A
	// Membership with a newer generation is not changed.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// role is the role after the change. Absent, unless manager is true or extra has a part, means that
	// the Membership is removed.
	// +optional
	Role Role `json:"role,omitempty"`
	// manager is the spec.manager of the Membership after the change. Defaults to false.
	// +optional
	Manager bool `json:"manager,omitempty"`
	// roles are the spec.roles of the Membership after the change.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Roles []RoleRef `json:"roles,omitempty"`
	// sudo is the spec.sudo of the Membership after the change. Defaults to false.
	// +optional
	Sudo bool `json:"sudo,omitempty"`
	// expiresAt is the spec.expiresAt of the Membership after the change.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
	// extra is the whole spec.extra of the Membership after the change.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Extra []MembershipExtra `json:"extra,omitempty"`
	// cascade removes the Memberships of the User in Workspaces of the Organization too,
	// before the one of the Organization. Defaults to false.
	// +optional
	Cascade bool `json:"cascade,omitempty"`
	// by is the metadata.name of the User who asked for the change.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	By string `json:"by,omitempty"`
	// idempotencyKey is the hash of the Idempotency-Key of the request. Absent if it had none.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
	// validUntil is the end of the rights of the User in by. A change that is not carried out by
	// then is dropped. Absent for a change that takes rights away, and if those rights do not end by
	// time.
	// +optional
	ValidUntil *metav1.Time `json:"validUntil,omitempty"`
	// requestedAt is the time at which the change was accepted.
	RequestedAt metav1.MicroTime `json:"requestedAt"`
}

// BotChange is an accepted change that gives rights to a Bot, or to jobs as the Bot: it creates the
// Bot, raises its role, or adds a trust rule. It is recorded as a MembershipChange is.
type BotChange struct {
	// name is the metadata.name of the Bot.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// workspace is the UUID of the Workspace of the Bot.
	// +kubebuilder:validation:MaxLength=36
	Workspace string `json:"workspace"`
	// uid is the metadata.uid of the Bot that changes. Absent means that the Bot is created.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// from is the role of the Bot that changes. A Bot that has another role is not changed.
	// +optional
	From Role `json:"from,omitempty"`
	// role is the role after the change.
	Role Role `json:"role"`
	// displayName is the name after the change. Absent means that it stays.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	DisplayName string `json:"displayName,omitempty"`
	// trust is a trust rule that the Bot gets. Absent means none.
	// +optional
	Trust *BotTrust `json:"trust,omitempty"`
	// rightsGeneration is the spec.rightsGeneration of the Bot for which the change was accepted. A
	// Bot that has another one lost rights since, and is not changed.
	// +optional
	RightsGeneration int64 `json:"rightsGeneration,omitempty"`
	// by is the metadata.name of the User who asked for the change.
	// +kubebuilder:validation:MaxLength=253
	By string `json:"by"`
	// idempotencyKey is the hash of the Idempotency-Key of the request. Absent if it had none.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
	// validUntil is the end of the rights of the User in by. A change that is not carried out by
	// then is dropped. Absent for a change that takes rights away, and if those rights do not end by
	// time.
	// +optional
	ValidUntil *metav1.Time `json:"validUntil,omitempty"`
	// requestedAt is the time at which the change was accepted.
	RequestedAt metav1.MicroTime `json:"requestedAt"`
}

// Billing is metadata for an external billing system.
type Billing struct {
	// costCenter is the account to charge, at most 128 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	CostCenter string `json:"costCenter,omitempty"`
	// labels are free keys and values for billing. At most 32; keys have 1 to 63
	// characters, values at most 256.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() >= 1 && k.size() <= 63)",message="billing label keys have 1 to 63 characters"
	Labels map[string]BillingValue `json:"labels,omitempty"`
}

// RevisedBilling is the billing of a Workspace, or that of all Workspaces of an Organization. Of the two,
// the one with the higher revision counts, and that of the Workspace if they are equal.
type RevisedBilling struct {
	Billing `json:",inline"`
	// revision is the number of times that an admin had given all Workspaces the billing of the
	// Organization when this was written.
	// +optional
	Revision int64 `json:"revision,omitempty"`
}

// BillingValue is the value of a billing label, at most 256 characters.
//
// +kubebuilder:validation:MaxLength=256
type BillingValue string

// OrganizationStatus is the observed state of an Organization.
type OrganizationStatus struct {
	CommonStatus `json:",inline"`
	// workspacePath is the absolute path of the kcp workspace of the Organization, such as
	// root:kedge:orgs:{uuid}. Set by the hub.
	// +optional
	WorkspacePath string `json:"workspacePath,omitempty"`
	// deletionRequestedAt is the time at which deletion was requested. It is set while the
	// Organization is soft-deleted: the Organization is hidden and can be undeleted until
	// the grace period (--deletion-grace) ends. Set by the hub.
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

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// CreateRequest makes an organization. Billing changes what a new organization has by default.
type CreateRequest struct {
	DisplayName string              `json:"displayName"`
	Description Field[string]       `json:"description,omitempty"`
	Billing     Field[BillingPatch] `json:"billing,omitempty"`
}

// CreateWorkspaceRequest makes a workspace. ExpiresAt is its end in RFC 3339. Billing changes what the
// workspace takes from its organization.
type CreateWorkspaceRequest struct {
	DisplayName string              `json:"displayName"`
	Description Field[string]       `json:"description,omitempty"`
	ExpiresAt   Field[string]       `json:"expiresAt,omitempty"`
	Billing     Field[BillingPatch] `json:"billing,omitempty"`
}

// UpdateWorkspaceRequest changes a workspace. ExpiresAt is null for one without an end. Requests is none or members.
type UpdateWorkspaceRequest struct {
	DisplayName Field[string]       `json:"displayName,omitempty"`
	Description Field[string]       `json:"description,omitempty"`
	ExpiresAt   Field[string]       `json:"expiresAt,omitempty"`
	Requests    Field[string]       `json:"requests,omitempty"`
	Billing     Field[BillingPatch] `json:"billing,omitempty"`
}

// RenameRequest changes the display name of a person.
type RenameRequest struct {
	DisplayName Field[string] `json:"displayName,omitempty"`
}

// Org is an organization as its members see it.
type Org struct {
	Answer               `json:"-"`
	UUID                 string       `json:"uuid"`
	DisplayName          string       `json:"displayName"`
	Description          string       `json:"description,omitempty"`
	Personal             bool         `json:"personal"`
	Role                 Role         `json:"role"`
	WorkspacePath        string       `json:"workspacePath"`
	WorkspaceCreation    string       `json:"workspaceCreation"`
	CatalogEntryCreation string       `json:"catalogEntryCreation"`
	DefaultAccess        string       `json:"defaultAccess"`
	Billing              *Billing     `json:"billing"`
	WorkspaceQuota       Quota        `json:"workspaceQuota"`
	CreatedAt            metav1.Time  `json:"createdAt"`
	CreatedBy            string       `json:"createdBy"`
	FirstAdmin           string       `json:"firstAdmin"`
	Phase                string       `json:"phase"`
	Conditions           []Condition  `json:"conditions"`
	DeletionRequestedAt  *metav1.Time `json:"deletionRequestedAt,omitempty"`
	PurgeAt              *metav1.Time `json:"purgeAt,omitempty"`
	// Bytes is what its workspaces store. It is absent until all of them were measured.
	Bytes *Amount `json:"bytes,omitempty"`
}

// Billing says who pays.
type Billing struct {
	CostCenter string            `json:"costCenter,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
}

// UpdateOrgRequest changes an organization. WorkspaceCreation and CatalogEntryCreation are members
// or admin, DefaultAccess is none or view.
type UpdateOrgRequest struct {
	DisplayName          Field[string]       `json:"displayName,omitempty"`
	Description          Field[string]       `json:"description,omitempty"`
	WorkspaceCreation    Field[string]       `json:"workspaceCreation,omitempty"`
	CatalogEntryCreation Field[string]       `json:"catalogEntryCreation,omitempty"`
	DefaultAccess        Field[string]       `json:"defaultAccess,omitempty"`
	Billing              Field[BillingPatch] `json:"billing,omitempty"`
}

// BillingPatch changes Billing. A label that is nil is taken away.
type BillingPatch struct {
	CostCenter Field[string]             `json:"costCenter,omitempty"`
	Labels     Field[map[string]*string] `json:"labels,omitempty"`
}

// Workspace is a workspace as its members see it.
type Workspace struct {
	Answer      `json:"-"`
	UUID        string `json:"uuid"`
	OrgUUID     string `json:"orgUUID"`
	DisplayName string `json:"displayName"`
	Description string `json:"description,omitempty"`
	Role        Role   `json:"role"`
	// Manager is true if the caller is a manager, who can be without a role.
	Manager       bool   `json:"manager,omitempty"`
	WorkspacePath string `json:"workspacePath"`
	ClusterID     string `json:"clusterID"`
	URL           string `json:"url"`
	// Billing is nil if the workspace has neither a cost center nor labels.
	Billing *Billing `json:"billing"`
	// ExpiresAt is the time at which the workspace is deleted by itself.
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
	// Requests is members if members of the organization who are not in the workspace may ask for rights in it,
	// else none.
	Requests            string       `json:"requests,omitempty"`
	CreatedAt           metav1.Time  `json:"createdAt"`
	CreatedBy           string       `json:"createdBy"`
	Phase               string       `json:"phase"`
	Conditions          []Condition  `json:"conditions"`
	DeletionRequestedAt *metav1.Time `json:"deletionRequestedAt,omitempty"`
	PurgeAt             *metav1.Time `json:"purgeAt,omitempty"`

	// What it stores, and what its organization stores, is absent until it was measured.
	Objects     *Amount `json:"objects,omitempty"`
	Bytes       *Amount `json:"bytes,omitempty"`
	Definitions *Amount `json:"customResourceDefinitions,omitempty"`
	Bindings    *Amount `json:"apiBindings,omitempty"`
	// Roles counts Roles, ClusterRoles and Namespaces.
	Roles    *Amount `json:"roles,omitempty"`
	OrgBytes *Amount `json:"orgBytes,omitempty"`
}

// Amount is what is used of a limit. A limit of 0 is none.
type Amount struct {
	Used  int64 `json:"used"`
	Limit int64 `json:"limit"`
}

// Member is a member of an organization or a workspace.
type Member struct {
	Answer      `json:"-"`
	User        string    `json:"user"`
	DisplayName string    `json:"displayName"`
	Role        Role      `json:"role"`
	Scope       string    `json:"scope"`
	Roles       []RoleRef `json:"roles,omitempty"`
	// Manager is true for a manager of a workspace, who can be without a role in it.
	Manager    bool        `json:"manager,omitempty"`
	Sudo       bool        `json:"sudo,omitempty"`
	Since      metav1.Time `json:"since"`
	Phase      string      `json:"phase"`
	Conditions []Condition `json:"conditions,omitempty"`
	// Active is true if the person can use the membership at present.
	Active bool `json:"active"`
	// ExpiresAt is the time from which on the membership gives nothing.
	ExpiresAt *metav1.Time   `json:"expiresAt,omitempty"`
	Sources   []MemberSource `json:"sources"`
	// Receipt is in the answer to a change that takes rights, for a client that prefers a representation.
	Receipt *Receipt `json:"receipt,omitempty"`
}

// MemberSource is a part of a membership. Source is hand for what an admin gave, request: and the ID of a request,
// or group: and the ID of the mapping of a group.
type MemberSource struct {
	Source    string       `json:"source"`
	Role      Role         `json:"role,omitempty"`
	Manager   bool         `json:"manager,omitempty"`
	Sudo      bool         `json:"sudo,omitempty"`
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
}

// RoleRef is a further role: a ClusterRole of the workspace or, with a namespace, a role there.
type RoleRef struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

// UserRef names a person.
type UserRef struct {
	Name string `json:"name"`
}

// AddOrgMemberRequest makes a person a member of an organization.
type AddOrgMemberRequest struct {
	UserRef   UserRef       `json:"userRef"`
	Role      Role          `json:"role"`
	ExpiresAt Field[string] `json:"expiresAt,omitempty"`
}

// UpdateOrgMemberRequest changes a member. ExpiresAt is null for a membership without an end.
type UpdateOrgMemberRequest struct {
	Role      Field[Role]   `json:"role,omitempty"`
	ExpiresAt Field[string] `json:"expiresAt,omitempty"`
}

// AddWorkspaceMemberRequest makes a person a member of a workspace.
type AddWorkspaceMemberRequest struct {
	UserRef UserRef `json:"userRef"`
	// Role can be absent for a manager.
	Role    Role      `json:"role,omitempty"`
	Manager bool      `json:"manager,omitempty"`
	Roles   []RoleRef `json:"roles,omitempty"`
	Sudo    bool      `json:"sudo,omitempty"`
	// ExpiresAt is the end in RFC 3339.
	ExpiresAt Field[string] `json:"expiresAt,omitempty"`
}

// UpdateWorkspaceMemberRequest changes a member of a workspace. Roles replaces the whole list.
type UpdateWorkspaceMemberRequest struct {
	// Role is null for a manager without a role.
	Role    Field[Role]      `json:"role,omitempty"`
	Manager Field[bool]      `json:"manager,omitempty"`
	Roles   Field[[]RoleRef] `json:"roles,omitempty"`
	Sudo    Field[bool]      `json:"sudo,omitempty"`
	// ExpiresAt is null for a membership without an end.
	ExpiresAt Field[string] `json:"expiresAt,omitempty"`
}

// Bot is what a program works as in one workspace.
type Bot struct {
	Answer            `json:"-"`
	UUID              string       `json:"uuid"`
	DisplayName       string       `json:"displayName"`
	Role              Role         `json:"role"`
	CreatedAt         metav1.Time  `json:"createdAt"`
	LastTokenIssuedAt *metav1.Time `json:"lastTokenIssuedAt,omitempty"`
	// NextTokenExpiresAt is the end of the first of its tokens that nobody has rotated. Those of jobs do not
	// count.
	NextTokenExpiresAt *metav1.Time `json:"nextTokenExpiresAt,omitempty"`
	Phase              string       `json:"phase"`
	Conditions         []Condition  `json:"conditions"`
	// Receipt is in the answer to a change that takes rights, for a client that prefers a representation.
	Receipt *Receipt `json:"receipt,omitempty"`
}

// CreateBotRequest makes a bot.
type CreateBotRequest struct {
	DisplayName string `json:"displayName"`
	Role        Role   `json:"role"`
}

// UpdateBotRequest changes a bot.
type UpdateBotRequest struct {
	DisplayName Field[string] `json:"displayName,omitempty"`
	Role        Field[Role]   `json:"role,omitempty"`
}

// BotToken is a token of a bot, without the token itself.
type BotToken struct {
	Answer              `json:"-"`
	ID                  string      `json:"id"`
	Name                string      `json:"name"`
	CreatedAt           metav1.Time `json:"createdAt"`
	ExpirationTimestamp metav1.Time `json:"expirationTimestamp"`
	// LastUsedAt is the time of a use: the first one within 15 seconds, later ones within an hour.
	LastUsedAt *metav1.Time `json:"lastUsedAt,omitempty"`
	// Trust is the ID of the trust rule that a job got the token by.
	Trust string `json:"trust,omitempty"`
	// RotatedTo is the ID of the token that replaced this one.
	RotatedTo string `json:"rotatedTo,omitempty"`
}

// IssuedBotToken is a new token of a bot. No other answer has the token itself.
type IssuedBotToken struct {
	BotToken
	Token string `json:"token"`
}

// IssueBotTokenRequest issues a token. Without ExpirationSeconds it lives as long as the hub decides.
type IssueBotTokenRequest struct {
	ExpirationSeconds *int64 `json:"expirationSeconds,omitempty"`
	Name              string `json:"name,omitempty"`
}

// RotateBotTokenRequest replaces a token, which still works for GracePeriodSeconds, by default ten minutes.
type RotateBotTokenRequest struct {
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`
}

// AdminOrg is an organization as platform admins see it. It has no contents of workspaces.
type AdminOrg struct {
	Answer         `json:"-"`
	UUID           string   `json:"uuid"`
	DisplayName    string   `json:"displayName"`
	Personal       bool     `json:"personal"`
	Billing        *Billing `json:"billing"`
	WorkspaceQuota Quota    `json:"workspaceQuota"`
	// Storage are the limits that apply, those of the hub included.
	Storage             StorageLimits `json:"storage"`
	CreatedAt           metav1.Time   `json:"createdAt"`
	CreatedBy           string        `json:"createdBy"`
	Phase               string        `json:"phase"`
	DeletionRequestedAt *metav1.Time  `json:"deletionRequestedAt,omitempty"`
	PurgeAt             *metav1.Time  `json:"purgeAt,omitempty"`
}

// StorageLimits are the limits of what an organization stores. Sizes are quantities of Kubernetes. 0 is no
// limit.
type StorageLimits struct {
	Bytes                string `json:"bytes"`
	WorkspaceBytes       string `json:"workspaceBytes"`
	WorkspaceObjects     int64  `json:"workspaceObjects"`
	WorkspaceCRDs        int64  `json:"workspaceCRDs"`
	WorkspaceAPIBindings int64  `json:"workspaceAPIBindings"`
	WorkspaceRoles       int64  `json:"workspaceRoles"`
}

// StorageLimitsPatch changes StorageLimits. null or 0 restores the default.
type StorageLimitsPatch struct {
	Bytes                Field[string] `json:"bytes,omitempty"`
	WorkspaceBytes       Field[string] `json:"workspaceBytes,omitempty"`
	WorkspaceObjects     Field[int64]  `json:"workspaceObjects,omitempty"`
	WorkspaceCRDs        Field[int64]  `json:"workspaceCRDs,omitempty"`
	WorkspaceAPIBindings Field[int64]  `json:"workspaceAPIBindings,omitempty"`
	WorkspaceRoles       Field[int64]  `json:"workspaceRoles,omitempty"`
}

// AdminUpdateOrgRequest changes an organization. A WorkspaceQuota of null or 0 restores the default, and a Storage of
// null all limits of the hub.
type AdminUpdateOrgRequest struct {
	WorkspaceQuota Field[int32]              `json:"workspaceQuota,omitempty"`
	Storage        Field[StorageLimitsPatch] `json:"storage,omitempty"`
}

// AdminAddAdminRequest makes a person admin of an organization without an admin who can act.
type AdminAddAdminRequest struct {
	UserRef UserRef `json:"userRef"`
	// Reason says why. The members of the organization read it.
	Reason string `json:"reason"`
}

// Deletion is a soft-deleted object that is not purged yet.
type Deletion struct {
	Answer `json:"-"`
	// Kind is User, Organization or Workspace. Name is the name of a User, or a UUID.
	Kind                string       `json:"kind"`
	Name                string       `json:"name"`
	OrgUUID             string       `json:"orgUUID,omitempty"`
	DisplayName         string       `json:"displayName"`
	DeletionRequestedAt *metav1.Time `json:"deletionRequestedAt"`
	PurgeAt             *metav1.Time `json:"purgeAt"`
	// Purging is true if the grace period is over.
	Purging bool `json:"purging"`
}

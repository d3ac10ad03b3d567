package client

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Role is admin or member.
type Role string

// The roles.
const (
	RoleAdmin  Role = "admin"
	RoleMember Role = "member"
)

// PhaseReady is the phase of an object that is all there. The others are Progressing and
// Terminating.
const PhaseReady = "Ready"

// Quota is a limit and its use.
type Quota struct {
	Limit int `json:"limit"`
	Used  int `json:"used"`
}

// Person is the caller's own account.
type Person struct {
	Tagged
	Name                string     `json:"name"`
	DisplayName         string     `json:"displayName"`
	Email               string     `json:"email"`
	Phase               string     `json:"phase"`
	Registration        string     `json:"registration"`
	PersonalOrg         string     `json:"personalOrg"`
	DefaultWorkspace    string     `json:"defaultWorkspace"`
	OrgQuota            Quota      `json:"orgQuota"`
	PlatformAdmin       bool       `json:"platformAdmin"`
	ExpiresAt           *time.Time `json:"expiresAt,omitempty"`
	DeletionRequestedAt *time.Time `json:"deletionRequestedAt,omitempty"`
	PurgeAt             *time.Time `json:"purgeAt,omitempty"`

	// Kind is Bot, and the fields below are set, if the caller is a bot. Then the ones above
	// are empty, except ExpiresAt.
	Kind      string `json:"kind,omitempty"`
	UUID      string `json:"uuid,omitempty"`
	Org       string `json:"org,omitempty"`
	Workspace string `json:"workspace,omitempty"`
	Role      Role   `json:"role,omitempty"`
}

// FoundPerson is a person in the search for people to invite.
type FoundPerson struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
}

// DeletedPerson is an account whose deletion was requested or withdrawn.
type DeletedPerson struct {
	Tagged
	FoundPerson
	DeletionRequestedAt *time.Time `json:"deletionRequestedAt,omitempty"`
	PurgeAt             *time.Time `json:"purgeAt,omitempty"`
}

// Membership is one row of a person's index. It is about an organization if WorkspaceUUID is empty.
type Membership struct {
	OrgUUID              string     `json:"orgUUID"`
	OrgDisplayName       string     `json:"orgDisplayName"`
	OrgCreatedAt         time.Time  `json:"orgCreatedAt"`
	OrgFirstAdmin        string     `json:"orgFirstAdmin,omitempty"`
	WorkspaceUUID        string     `json:"workspaceUUID,omitempty"`
	WorkspaceDisplayName string     `json:"workspaceDisplayName,omitempty"`
	ClusterID            string     `json:"clusterID,omitempty"`
	Role                 Role       `json:"role"`
	Personal             bool       `json:"personal,omitempty"`
	SoftDeletedAt        *time.Time `json:"softDeletedAt,omitempty"`
	PurgeAt              *time.Time `json:"purgeAt,omitempty"`
}

// Session is one login of a person.
type Session struct {
	Tagged
	ID          string    `json:"id"`
	Client      string    `json:"client"`
	Description string    `json:"description"`
	CreatedAt   time.Time `json:"createdAt"`
	LastUsedAt  time.Time `json:"lastUsedAt"`
	ExpiresAt   time.Time `json:"expiresAt"`
	Current     bool      `json:"current"`
}

// Organization is an Organization as its members see it.
type Organization struct {
	Tagged
	UUID                 string             `json:"uuid"`
	DisplayName          string             `json:"displayName"`
	Personal             bool               `json:"personal"`
	Role                 Role               `json:"role"`
	WorkspacePath        string             `json:"workspacePath"`
	WorkspaceCreation    string             `json:"workspaceCreation"`
	CatalogEntryCreation string             `json:"catalogEntryCreation"`
	DefaultAccess        string             `json:"defaultAccess"`
	Billing              *Billing           `json:"billing"`
	WorkspaceQuota       Quota              `json:"workspaceQuota"`
	CreatedAt            time.Time          `json:"createdAt"`
	CreatedBy            string             `json:"createdBy"`
	FirstAdmin           string             `json:"firstAdmin"`
	Phase                string             `json:"phase"`
	Conditions           []metav1.Condition `json:"conditions"`
	DeletionRequestedAt  *time.Time         `json:"deletionRequestedAt,omitempty"`
	PurgeAt              *time.Time         `json:"purgeAt,omitempty"`
}

// Billing says who pays.
type Billing struct {
	CostCenter string            `json:"costCenter,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
}

// OrganizationPatch changes the fields that are not nil.
type OrganizationPatch struct {
	DisplayName *string `json:"displayName,omitempty"`
	// WorkspaceCreation and CatalogEntryCreation are members or admin.
	WorkspaceCreation    *string `json:"workspaceCreation,omitempty"`
	CatalogEntryCreation *string `json:"catalogEntryCreation,omitempty"`
	// DefaultAccess is none or view.
	DefaultAccess *string  `json:"defaultAccess,omitempty"`
	Billing       *Billing `json:"billing,omitempty"`
}

// Workspace is a Workspace as its members see it.
type Workspace struct {
	Tagged
	UUID                string             `json:"uuid"`
	OrgUUID             string             `json:"orgUUID"`
	DisplayName         string             `json:"displayName"`
	Role                Role               `json:"role"`
	WorkspacePath       string             `json:"workspacePath"`
	ClusterID           string             `json:"clusterID"`
	URL                 string             `json:"url"`
	CreatedAt           time.Time          `json:"createdAt"`
	CreatedBy           string             `json:"createdBy"`
	Phase               string             `json:"phase"`
	Conditions          []metav1.Condition `json:"conditions"`
	DeletionRequestedAt *time.Time         `json:"deletionRequestedAt,omitempty"`
	PurgeAt             *time.Time         `json:"purgeAt,omitempty"`
}

// Member is a member of an organization or a workspace.
type Member struct {
	Tagged
	User        string             `json:"user"`
	DisplayName string             `json:"displayName"`
	Role        Role               `json:"role"`
	Scope       string             `json:"scope"`
	Roles       []RoleRef          `json:"roles,omitempty"`
	Sudo        bool               `json:"sudo,omitempty"`
	Since       time.Time          `json:"since"`
	Phase       string             `json:"phase"`
	Conditions  []metav1.Condition `json:"conditions,omitempty"`
	Active      bool               `json:"active"`
}

// RoleRef is a further role: a ClusterRole of the workspace or, with a namespace, a role there.
type RoleRef struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

// MemberPatch changes the fields that are not nil. Roles and Sudo are for workspaces.
type MemberPatch struct {
	Role  *Role      `json:"role,omitempty"`
	Roles *[]RoleRef `json:"roles,omitempty"`
	Sudo  *bool      `json:"sudo,omitempty"`
}

// Bot is what a program works as in one workspace.
type Bot struct {
	Tagged
	UUID              string             `json:"uuid"`
	DisplayName       string             `json:"displayName"`
	Role              Role               `json:"role"`
	CreatedAt         time.Time          `json:"createdAt"`
	LastTokenIssuedAt *time.Time         `json:"lastTokenIssuedAt,omitempty"`
	Phase             string             `json:"phase"`
	Conditions        []metav1.Condition `json:"conditions"`
}

// BotPatch changes the fields that are not nil.
type BotPatch struct {
	DisplayName *string `json:"displayName,omitempty"`
	Role        *Role   `json:"role,omitempty"`
}

// BotToken is a token of a bot. Token is set in the answer to its creation only.
type BotToken struct {
	ID                  string    `json:"id"`
	Name                string    `json:"name"`
	Token               string    `json:"token,omitempty"`
	CreatedAt           time.Time `json:"createdAt"`
	ExpirationTimestamp time.Time `json:"expirationTimestamp"`
}

// AdminPerson is a person as platform admins see them.
type AdminPerson struct {
	Tagged
	Name                string     `json:"name"`
	DisplayName         string     `json:"displayName"`
	Email               string     `json:"email"`
	Registration        string     `json:"registration"`
	PersonalOrg         string     `json:"personalOrg"`
	OrgQuota            Quota      `json:"orgQuota"`
	CreatedAt           time.Time  `json:"createdAt"`
	Phase               string     `json:"phase"`
	DeletionRequestedAt *time.Time `json:"deletionRequestedAt,omitempty"`
}

// AdminPersonPatch changes the fields that are not nil. An OrgQuota of 0 restores the default.
type AdminPersonPatch struct {
	OrgQuota     *int    `json:"orgQuota,omitempty"`
	Registration *string `json:"registration,omitempty"`
}

// AdminOrganization is an Organization as platform admins see it.
type AdminOrganization struct {
	Tagged
	UUID                string     `json:"uuid"`
	DisplayName         string     `json:"displayName"`
	Personal            bool       `json:"personal"`
	WorkspaceQuota      Quota      `json:"workspaceQuota"`
	CreatedAt           time.Time  `json:"createdAt"`
	CreatedBy           string     `json:"createdBy"`
	Phase               string     `json:"phase"`
	DeletionRequestedAt *time.Time `json:"deletionRequestedAt,omitempty"`
	PurgeAt             *time.Time `json:"purgeAt,omitempty"`
}

// Deletion is a soft-deleted object that is not purged yet.
type Deletion struct {
	// Kind is User, Organization or Workspace.
	Kind                string     `json:"kind"`
	Name                string     `json:"name"`
	OrgUUID             string     `json:"orgUUID,omitempty"`
	DisplayName         string     `json:"displayName"`
	DeletionRequestedAt *time.Time `json:"deletionRequestedAt"`
	PurgeAt             *time.Time `json:"purgeAt"`
	Purging             bool       `json:"purging"`
}

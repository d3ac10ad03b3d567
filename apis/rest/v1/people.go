package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// User is the caller's own account.
type User struct {
	Answer      `json:"-"`
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
	Email       string `json:"email"`
	// Issuer and Subject identify the person: --admin-user names them {issuer}#{subject}, and people of the
	// token file, whose issuer is static, by the subject.
	Issuer           string `json:"issuer"`
	Subject          string `json:"subject"`
	Phase            string `json:"phase"`
	PersonalOrg      string `json:"personalOrg"`
	DefaultWorkspace string `json:"defaultWorkspace"`
	OrgQuota         Quota  `json:"orgQuota"`
	PlatformAdmin    bool   `json:"platformAdmin"`
	Auditor          bool   `json:"auditor"`
	// Registration is Approved, Pending or Rejected.
	Registration string `json:"registration"`
	// RejectionReason is what a platform admin gave as the reason of a rejection.
	RejectionReason string `json:"rejectionReason,omitempty"`
	// ExpiresAt is when the token expires.
	ExpiresAt           *metav1.Time `json:"expiresAt,omitempty"`
	DeletionRequestedAt *metav1.Time `json:"deletionRequestedAt,omitempty"`
	PurgeAt             *metav1.Time `json:"purgeAt,omitempty"`
}

// BotSelf is what a bot sees instead. Kind is Bot.
type BotSelf struct {
	Kind      string      `json:"kind"`
	UUID      string      `json:"uuid"`
	Org       string      `json:"org"`
	Workspace string      `json:"workspace"`
	Role      Role        `json:"role"`
	ExpiresAt metav1.Time `json:"expiresAt"`
	// Token is the ID of the token of the request. Job is true if a job got it for its ID token.
	Token string `json:"token"`
	Job   bool   `json:"job,omitempty"`
}

// Me is the caller, a User or a bot. Kind and the fields after it are those of BotSelf, and empty for
// a User; a bot has none of the others but ExpiresAt.
type Me struct {
	User
	Kind      string `json:"kind,omitempty"`
	UUID      string `json:"uuid,omitempty"`
	Org       string `json:"org,omitempty"`
	Workspace string `json:"workspace,omitempty"`
	Role      Role   `json:"role,omitempty"`
	Token     string `json:"token,omitempty"`
	Job       bool   `json:"job,omitempty"`
}

// Person is a person in the search for people to invite.
type Person struct {
	Answer      `json:"-"`
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
}

// UserDeletion is an account whose deletion was requested or withdrawn.
type UserDeletion struct {
	Answer              `json:"-"`
	Name                string       `json:"name"`
	DisplayName         string       `json:"displayName"`
	DeletionRequestedAt *metav1.Time `json:"deletionRequestedAt,omitempty"`
	PurgeAt             *metav1.Time `json:"purgeAt,omitempty"`
	// Receipt is in the answer to a change that takes rights, for a client that prefers a representation.
	Receipt *Receipt `json:"receipt,omitempty"`
}

// MembershipRow is one row of a person's index. It is about an organization if WorkspaceUUID is
// empty.
type MembershipRow struct {
	Answer               `json:"-"`
	OrgUUID              string       `json:"orgUUID"`
	OrgDisplayName       string       `json:"orgDisplayName"`
	OrgCreatedAt         metav1.Time  `json:"orgCreatedAt"`
	OrgFirstAdmin        string       `json:"orgFirstAdmin,omitempty"`
	WorkspaceUUID        string       `json:"workspaceUUID,omitempty"`
	WorkspaceDisplayName string       `json:"workspaceDisplayName,omitempty"`
	ClusterID            string       `json:"clusterID,omitempty"`
	Role                 Role         `json:"role"`
	Manager              bool         `json:"manager,omitempty"`
	Personal             bool         `json:"personal,omitempty"`
	SoftDeletedAt        *metav1.Time `json:"softDeletedAt,omitempty"`
	PurgeAt              *metav1.Time `json:"purgeAt,omitempty"`
}

// Session is one login of a person.
type Session struct {
	Answer      `json:"-"`
	ID          string      `json:"id"`
	Client      string      `json:"client"`
	Description string      `json:"description"`
	CreatedAt   metav1.Time `json:"createdAt"`
	LastUsedAt  metav1.Time `json:"lastUsedAt"`
	// ExpiresAt is when the session ends if it is not used any more.
	ExpiresAt metav1.Time `json:"expiresAt"`
	// Current is true for the session of the request itself.
	Current bool `json:"current"`
}

// AdminUser is a person as platform admins see them.
type AdminUser struct {
	Answer              `json:"-"`
	Name                string       `json:"name"`
	DisplayName         string       `json:"displayName"`
	Email               string       `json:"email"`
	Registration        string       `json:"registration"`
	RejectionReason     string       `json:"rejectionReason,omitempty"`
	PersonalOrg         string       `json:"personalOrg"`
	OrgQuota            Quota        `json:"orgQuota"`
	CreatedAt           metav1.Time  `json:"createdAt"`
	Phase               string       `json:"phase"`
	DeletionRequestedAt *metav1.Time `json:"deletionRequestedAt,omitempty"`
	// Receipt is in the answer to a change that takes rights, for a client that prefers a representation.
	Receipt *Receipt `json:"receipt,omitempty"`
}

// AdminUpdateUserRequest changes a person. An OrgQuota of null or 0 restores the default. RejectionReason is for a
// rejection; the person is shown it.
type AdminUpdateUserRequest struct {
	OrgQuota        Field[int32]  `json:"orgQuota,omitempty"`
	Registration    Field[string] `json:"registration,omitempty"`
	RejectionReason Field[string] `json:"rejectionReason,omitempty"`
}

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The states of an invitation. Only an open one can be accepted.
const (
	InvitationOpen     = "Open"
	InvitationAccepted = "Accepted"
	InvitationDeclined = "Declined"
	InvitationRevoked  = "Revoked"
	InvitationExpired  = "Expired"
	// InvitationVoid is the state of an open invitation that cannot be accepted at present.
	InvitationVoid = "Void"
)

// CreateInvitationRequest invites somebody to an organization or a workspace. Without ExpiresAt the
// invitation expires after a week.
type CreateInvitationRequest struct {
	Role Role `json:"role"`
	// Email is the verified address that the person must have. Without it the link suffices.
	Email     string       `json:"email,omitempty"`
	Note      string       `json:"note,omitempty"`
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
	// MembershipExpiresAt is the end of the membership. Without it, that does not end by time.
	MembershipExpiresAt *metav1.Time `json:"membershipExpiresAt,omitempty"`
}

// Invitation is an invitation as those see it who may add members to the place.
type Invitation struct {
	Answer `json:"-"`
	ID     string `json:"id"`
	State  string `json:"state"`
	Role   Role   `json:"role"`
	Scope  string `json:"scope"`
	// Workspace is the UUID of the workspace. It is empty for an invitation to the organization.
	Workspace string `json:"workspace,omitempty"`
	Email     string `json:"email,omitempty"`
	Note      string `json:"note,omitempty"`
	// InvitedBy and AcceptedBy are names of people.
	InvitedBy string      `json:"invitedBy"`
	CreatedAt metav1.Time `json:"createdAt"`
	ExpiresAt metav1.Time `json:"expiresAt"`
	// MembershipExpiresAt is the end of the membership that the person gets.
	MembershipExpiresAt *metav1.Time `json:"membershipExpiresAt,omitempty"`
	AcceptedBy          string       `json:"acceptedBy,omitempty"`
}

// CreatedInvitation is a new invitation. URL is the link for the person; nobody can read it again.
type CreatedInvitation struct {
	Invitation
	URL string `json:"url"`
}

// OfferedInvitation is an invitation as the invited person sees it.
type OfferedInvitation struct {
	Answer               `json:"-"`
	ID                   string `json:"id"`
	State                string `json:"state"`
	Role                 Role   `json:"role"`
	OrgDisplayName       string `json:"orgDisplayName"`
	WorkspaceDisplayName string `json:"workspaceDisplayName,omitempty"`
	// InvitedBy is the display name of the person who invites.
	InvitedBy string      `json:"invitedBy"`
	Note      string      `json:"note,omitempty"`
	ExpiresAt metav1.Time `json:"expiresAt"`
	// MembershipExpiresAt is the end of the membership that the person gets.
	MembershipExpiresAt *metav1.Time `json:"membershipExpiresAt,omitempty"`
}

// AcceptedInvitation is the membership that a person has by an invitation, and where it is.
type AcceptedInvitation struct {
	Member
	OrgUUID string `json:"orgUUID"`
	// WorkspaceUUID is empty for a membership of the organization.
	WorkspaceUUID string `json:"workspaceUUID,omitempty"`
}

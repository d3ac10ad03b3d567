package tenancy

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/mail"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

const (
	// DefaultInvitationLife is the time after which an Invitation expires that does not say when.
	DefaultInvitationLife = 7 * 24 * time.Hour
	minInvitationLife     = time.Minute
	maxInvitationLife     = 30 * 24 * time.Hour
	// InvitationsKept is the time for which an Invitation is listed after it expired.
	InvitationsKept = 30 * 24 * time.Hour

	maxNote  = 500
	maxEmail = 254
)

// InvitationVoid is the state of an open Invitation that cannot be accepted at present, because the
// place is being deleted or the person who invites may not do so any more. It is computed when somebody
// looks, and is never written.
const InvitationVoid v1alpha1.InvitationState = "Void"

// CauseMember is the cause of a refusal to accept a place that the person has already.
const CauseMember = "AlreadyMember"

// CheckInvitationExpiry returns the time at which a new Invitation expires. nil means the default.
func CheckInvitationExpiry(field string, at *metav1.Time, now time.Time) (time.Time, error) {
	if at == nil {
		return now.Add(DefaultInvitationLife).Truncate(time.Second), nil
	}
	if life := at.Sub(now); life < minInvitationLife || life > maxInvitationLife {
		return time.Time{}, errs.UnprocessableField(field, "must be a minute to 30 days ahead")
	}
	return at.UTC().Truncate(time.Second), nil
}

// CheckInvitedExpiry validates the end of the Membership that an Invitation gives.
func CheckInvitedExpiry(field string, at *metav1.Time, now time.Time) (*metav1.Time, error) {
	if at == nil {
		return nil, nil
	}
	return ParseExpiry(field, at.UTC().Format(time.RFC3339), now)
}

// CheckEmail returns an address of e-mail in the form in which addresses are compared.
func CheckEmail(field, address string) (string, error) {
	if address == "" {
		return "", nil
	}
	parsed, err := mail.ParseAddress(address)
	if err != nil || parsed.Address != address || len(address) > maxEmail || strings.ContainsFunc(address, unicode.IsControl) || NormalEmail(address) == "" {
		return "", errs.InvalidField(field, "must be an address of e-mail with ASCII characters only, such as jane@example.com")
	}
	return NormalEmail(address), nil
}

// NormalEmail returns the form in which addresses are compared, or nothing for an address that is compared
// with none because it has another character than those of ASCII: Unicode has letters that look like those
// of ASCII, and some whose lower case is one of ASCII.
func NormalEmail(address string) string {
	if strings.ContainsFunc(address, func(c rune) bool { return c > unicode.MaxASCII }) {
		return ""
	}
	return strings.ToLower(address)
}

// CheckNote validates the note of an Invitation.
func CheckNote(field, note string) error { return checkText(field, note, maxNote) }

// InvitationHash is the hash of the secret of an Invitation.
func InvitationHash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// OpensInvitation reports whether a secret is that of an Invitation. It takes equally long for nil.
func OpensInvitation(i *v1alpha1.Invitation, secret string) bool {
	hash := strings.Repeat("0", hex.EncodedLen(sha256.Size))
	if i != nil {
		hash = i.Spec.SecretHash
	}
	return subtle.ConstantTimeCompare([]byte(InvitationHash(secret)), []byte(hash)) == 1 && i != nil
}

// InvitedWorkspace is the UUID of the Workspace that an Invitation is for, or empty for the Organization.
func InvitedWorkspace(s v1alpha1.InvitationSpec) string {
	if s.WorkspaceRef == nil {
		return ""
	}
	return s.WorkspaceRef.Name
}

// NewInvitation returns the Invitation that a change creates.
func NewInvitation(c v1alpha1.InvitationChange) *v1alpha1.Invitation {
	i := &v1alpha1.Invitation{Spec: *c.Invitation}
	i.Name = c.Name
	return i
}

// ChangedInvitation returns the status of an Invitation after a change.
func ChangedInvitation(held *v1alpha1.Invitation, c v1alpha1.InvitationChange) v1alpha1.InvitationStatus {
	s := held.Status
	if c.SignedUp != "" {
		s.SignedUp = c.SignedUp
	}
	if c.State != "" {
		s.State = c.State
	}
	if c.State == v1alpha1.InvitationAccepted {
		s.AcceptedBy = c.By
	}
	return s
}

// InvitationStateAt is the state of an Invitation at a time, whether it is void or not.
func InvitationStateAt(i *v1alpha1.Invitation, now time.Time) v1alpha1.InvitationState {
	switch {
	case i.Status.State != "" && i.Status.State != v1alpha1.InvitationOpen:
		return i.Status.State
	case !now.Before(i.Spec.ExpiresAt.Time), Ended(i.Spec.MembershipExpiresAt, now):
		return v1alpha1.InvitationExpired
	}
	return v1alpha1.InvitationOpen
}

// MayInvite refuses callers who may not add members to what the scope is about.
func MayInvite(s Scope) error {
	if s.Workspace == nil {
		return s.RequireOrgAdmin("invite people")
	}
	return s.RequireWorkspaceManager("invite people")
}

// MayInviteAs is MayInvite for one role: managers of a Workspace invite no admins.
func MayInviteAs(role v1alpha1.Role) func(Scope) error {
	return func(s Scope) error {
		if s.Workspace == nil {
			return MayInvite(s)
		}
		return s.RequireGrant(role, "invite people as "+string(role))
	}
}

// StillInvites reports whether the person who invites may do so, and whether there is a place to invite
// to: the Memberships are those of the inviter, or nil, and only the one counts that entitled them.
// workspace is nil for an Invitation to the Organization. by is what entitles the inviter.
func StillInvites(i *v1alpha1.Invitation, inviter *v1alpha1.User, org Org, workspace *Workspace, inOrg, inWorkspace *v1alpha1.Membership, now time.Time,
) (by Standing, ok bool) {
	if org.Deleted() || workspace != nil && workspace.Deleted() || !Active(inviter) {
		return by, false
	}
	entitling := func(m *v1alpha1.Membership) *v1alpha1.Membership {
		if m == nil || m.UID != i.Spec.InvitedBy.MembershipUID {
			return nil
		}
		return withoutGroups(m)
	}
	s := Scope{User: inviter.Name, Org: org, Workspace: workspace}
	inOrg, inWorkspace = entitling(inOrg), entitling(inWorkspace)
	may := MayInviteAs(i.Spec.Role)
	if may(s.At(org.Organization, inOrg, inWorkspace, now)) != nil {
		return by, false
	}
	return s.StandingOf(org.Organization, inOrg, inWorkspace, now, may), true
}

// NoSuchInvitation is the answer for an Invitation that does not exist, and for everybody who may not
// know whether it does.
func NoSuchInvitation() error {
	return errs.New(errs.NotFound, "there is no such invitation, or the link is not complete; ask for a new one")
}

// NotOpen refuses an answer to an Invitation that is not open. The state is the cause.
func NotOpen(state v1alpha1.InvitationState) error {
	message := map[v1alpha1.InvitationState]string{
		v1alpha1.InvitationAccepted: "this invitation was accepted already, and it is for one person",
		v1alpha1.InvitationDeclined: "this invitation was declined",
		v1alpha1.InvitationRevoked:  "this invitation was taken back",
		v1alpha1.InvitationExpired:  "this invitation has expired",
		InvitationVoid:              "this invitation is void: who sent it may not invite any more, or the place does not exist any more",
	}[state] + "; ask for a new one"
	return errs.New(errs.Conflict, message, errs.Cause{Type: string(state), Message: message})
}

// AlreadyMember refuses to accept a place that the person has already.
func AlreadyMember(role string) error {
	message := "you are a member there already, as " + role + "; the invitation stays open"
	return errs.New(errs.Conflict, message, errs.Cause{Type: CauseMember, Message: message})
}

package tenancy

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

const (
	// DefaultRequestDuration is how long the rights of an AccessRequest last that does not say it.
	DefaultRequestDuration = time.Hour
	minRequestDuration     = time.Minute
	maxRequestDuration     = 12 * time.Hour
	// RequestLapses is the time after which nobody can decide about an AccessRequest any more.
	RequestLapses = 24 * time.Hour
	// RequestsKept is the time for which an AccessRequest is listed.
	RequestsKept = 30 * 24 * time.Hour
	maxReason    = 500
)

// The values of the setting requests of a Workspace.
const (
	// RequestsNone lets nobody ask but those who are in the Workspace.
	RequestsNone = "none"
	// RequestsMembers lets the other members of the Organization ask, too.
	RequestsMembers = "members"
)

const (
	// CauseOwnRequest is the cause of a refusal to decide about a request of one's own.
	CauseOwnRequest = "OwnRequest"
	// CauseHasAlready is the cause of a refusal to give what a person has.
	CauseHasAlready = "HasAlready"
)

// CheckRequest validates what an AccessRequest asks for. duration is a Go duration, or empty.
func CheckRequest(kind v1alpha1.AccessRequestKind, duration, reason string) (time.Duration, error) {
	if !slices.Contains([]v1alpha1.AccessRequestKind{v1alpha1.RequestSudo, v1alpha1.RequestAdmin, v1alpha1.RequestMember}, kind) {
		return 0, errs.InvalidField("kind", "must be sudo, admin or member")
	}
	lasts := DefaultRequestDuration
	if duration != "" {
		var err error
		if lasts, err = time.ParseDuration(duration); err != nil || lasts < minRequestDuration || lasts > maxRequestDuration {
			return 0, errs.InvalidField("for", "must be a duration of 1m to 12h, such as 90m")
		}
	}
	return lasts.Truncate(time.Second), CheckNeededReason("reason", reason)
}

// CheckReason validates a text about an AccessRequest, or about what a platform admin does.
func CheckReason(field, text string) error { return checkText(field, text, maxReason) }

// CheckNeededReason is CheckReason for a text that must say something.
func CheckNeededReason(field, text string) error {
	if strings.TrimSpace(text) == "" {
		return errs.InvalidField(field, "must say why")
	}
	return CheckReason(field, text)
}

// RoleOfRequest is the role that an AccessRequest asks for, or empty for sudo.
func RoleOfRequest(kind v1alpha1.AccessRequestKind) v1alpha1.Role {
	switch kind {
	case v1alpha1.RequestAdmin:
		return v1alpha1.RoleAdmin
	case v1alpha1.RequestMember:
		return v1alpha1.RoleMember
	}
	return ""
}

// NewAccessRequest returns the AccessRequest that a change creates.
func NewAccessRequest(c v1alpha1.RequestChange) *v1alpha1.AccessRequest {
	r := &v1alpha1.AccessRequest{Spec: *c.Request}
	r.Name = c.Name
	if c.Status != nil {
		r.Status = *c.Status
	}
	return r
}

// RequestEnd is when the state of an AccessRequest changes by time, or nil.
func RequestEnd(r *v1alpha1.AccessRequest) *time.Time {
	switch r.Status.State {
	case "", v1alpha1.RequestOpen:
		at := r.CreationTimestamp.Add(RequestLapses)
		return &at
	case v1alpha1.RequestApproved:
		if r.Status.EndsAt != nil {
			return &r.Status.EndsAt.Time
		}
	}
	return nil
}

// RequestStateAt is the state of an AccessRequest at a time.
func RequestStateAt(r *v1alpha1.AccessRequest, now time.Time) v1alpha1.AccessRequestState {
	over := false
	if end := RequestEnd(r); end != nil {
		over = !now.Before(*end)
	}
	switch state := r.Status.State; {
	case state == v1alpha1.RequestApproved && over:
		return v1alpha1.RequestEnded
	case state != "" && state != v1alpha1.RequestOpen:
		return state
	case over:
		return v1alpha1.RequestLapsed
	}
	return v1alpha1.RequestOpen
}

// MayRequest refuses callers who may not ask for rights in the Workspace of the scope: those who are not in it,
// unless its admins let members of the Organization ask. The answer is that for a missing Workspace.
func MayRequest(s Scope) error {
	if s.WorkspaceRole != "" || s.WorkspaceManager || s.OrgRole != "" && s.Workspace.Requests == RequestsMembers {
		return nil
	}
	return NoSuchRequestedWorkspace()
}

// NoSuchRequestedWorkspace is the answer for a Workspace in which the caller cannot ask for rights.
func NoSuchRequestedWorkspace() error {
	return errs.New(errs.NotFound, "there is no such workspace in which you can ask for rights; GET …/requests/workspaces lists those that let you ask")
}

// MayDecideRequest refuses callers who may not decide about requests of a kind in the Workspace of the scope: managers
// give the role of a member.
func MayDecideRequest(kind v1alpha1.AccessRequestKind) func(Scope) error {
	return func(s Scope) error {
		if kind == v1alpha1.RequestMember {
			return s.RequireWorkspaceManager("decide about this request")
		}
		return s.RequireWorkspaceAdmin("decide about this request")
	}
}

// NoSuchRequest is the answer for an AccessRequest that does not exist, and for everybody who may not see it.
func NoSuchRequest() error { return errs.New(errs.NotFound, "there is no such request") }

// RequestNotOpen refuses a decision about an AccessRequest in another state. The state is the cause.
func RequestNotOpen(state v1alpha1.AccessRequestState) error {
	message := map[v1alpha1.AccessRequestState]string{
		v1alpha1.RequestOpen:      "this request is open: approve it, deny it or withdraw it",
		v1alpha1.RequestApproved:  "this request was approved already; revoke ends what it gave",
		v1alpha1.RequestDenied:    "this request was denied already",
		v1alpha1.RequestWithdrawn: "this request was withdrawn",
		v1alpha1.RequestLapsed:    "nobody decided about this request within a day; it can be made again",
		v1alpha1.RequestEnded:     "what this request gave has ended",
	}[state]
	return errs.New(errs.Conflict, message, errs.Cause{Type: string(state), Message: message})
}

// HasAlready refuses to give what a person has.
func HasAlready(kind v1alpha1.AccessRequestKind) error {
	message := "that is there already: the role, or sudo, of this request (" + string(kind) + ") or more"
	return errs.New(errs.Conflict, message, errs.Cause{Type: CauseHasAlready, Message: message})
}

// Has reports whether the rights of a scope, and of the Membership in the Workspace, which can be nil, have what an
// AccessRequest asks for.
func Has(kind v1alpha1.AccessRequestKind, s Scope, inWorkspace *v1alpha1.Membership, now time.Time) bool {
	if role := RoleOfRequest(kind); role != "" {
		return s.WorkspaceRole.AtLeast(role)
	}
	if inWorkspace == nil {
		return false
	}
	e := EffectiveAt(inWorkspace, now)
	return e != nil && e.Spec.Sudo
}

// equalStatus reports whether two statuses are from one decision.
func equalStatus(a, b v1alpha1.AccessRequestStatus) bool {
	return a.State == b.State && a.DecidedBy == b.DecidedBy && a.Note == b.Note && a.EndsAt.Equal(b.EndsAt)
}

// partOf is the part of a Membership that an approved AccessRequest gives.
func partOf(r *v1alpha1.AccessRequest, end *metav1.Time) v1alpha1.MembershipExtra {
	role := RoleOfRequest(r.Spec.Kind)
	return v1alpha1.MembershipExtra{Source: RequestSource(r.Name), Role: role, Sudo: role == "", ExpiresAt: end}
}

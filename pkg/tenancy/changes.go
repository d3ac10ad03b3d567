package tenancy

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// The types of causes of refusals by O-9.
const (
	// CauseSoleAdmin means that the Organization would have no admin left.
	CauseSoleAdmin = "SoleAdmin"
	// CauseWorkspaceMembership means that the User is a member of a Workspace, which
	// prevents the removal. The field is the UUID of the Workspace, the message its display
	// name.
	CauseWorkspaceMembership = "WorkspaceMembership"
)

// Ending is a request to remove or demote a member of an Organization, or to give their Membership an
// end.
type Ending struct {
	User string
	// By is the name of the User who makes the request. DecideEnding checks again that they
	// are an admin.
	By string
	// Role is the role after the change. It is empty for a removal or, with an Expiry, if it stays as
	// it is.
	Role v1alpha1.Role
	// Expiry is the end after the change. With nil it stays as it is.
	Expiry *Expiry
	// Author is what entitles the User in By.
	Author Standing
	// Cascade removes the Memberships in Workspaces of the Organization too.
	Cascade bool
	At      metav1.MicroTime
}

// DecideEnding applies O-9 to an Ending. It returns spec.membershipChanges of the
// Organization with the new change, or nil if there is nothing to change. The Organization keeps an
// admin whose Membership does not end by time. memberships are all living Memberships in the
// Organization, listed in kcp after o was read. active reports whether a
// User can act as an admin, and workspace returns the display name of a Workspace.
func DecideEnding(o *v1alpha1.Organization, memberships []*v1alpha1.Membership, e Ending, active func(user string) bool, workspace func(uuid string) string) ([]v1alpha1.MembershipChange, error) {
	var m *v1alpha1.Membership
	var in []string
	// admins are the other ones; lasting are those of them whose Memberships do not end by time.
	admins, lasting := map[string]bool{}, map[string]bool{}
	for _, other := range memberships {
		switch {
		case other.Spec.Scope == v1alpha1.ScopeOrg && other.Spec.UserRef.Name == e.User:
			m = other
		case other.Spec.Scope == v1alpha1.ScopeOrg && other.Spec.Role.AtLeast(v1alpha1.RoleAdmin) && active(other.Spec.UserRef.Name):
			admins[other.Spec.UserRef.Name] = true
			if LastingAdmin(other) {
				lasting[other.Spec.UserRef.Name] = true
			}
		case other.Spec.Scope == v1alpha1.ScopeWorkspace && other.Spec.UserRef.Name == e.User && other.Spec.WorkspaceRef != nil:
			in = append(in, other.Spec.WorkspaceRef.Name)
		}
	}
	if e.By != e.User && !admins[e.By] {
		return nil, notAnAdminNow()
	}
	if e.By != e.User {
		if err := CheckStaysAdmin(o, e.By); err != nil {
			return nil, err
		}
	}
	if m == nil {
		return nil, NotAMember(e.User)
	}
	for _, c := range o.Spec.MembershipChanges {
		// They are in that Workspace as soon as the change is carried out.
		if c.User == e.User && c.Workspace != "" && c.UID == "" {
			in = append(in, c.Workspace)
		}
	}
	pending, ok := ChangeOf(o, e.User, "")
	stays := e.Role != "" || e.Expiry != nil
	if ok = ok && ChangeApplies(pending, m); ok && Removes(pending) && stays {
		return nil, errs.New(errs.Conflict, "user "+e.User+" is being removed at the moment; add them again afterwards")
	}
	before := given(m)
	if ok && !Removes(pending) {
		before = pending
	}
	if stays && before.Role == "" {
		return nil, notByHand(e.User)
	}
	if !stays {
		if err := e.checkGroups(o, before, memberships); err != nil {
			return nil, err
		}
	}
	c := v1alpha1.MembershipChange{User: e.User, UID: m.UID, Generation: m.Generation, Cascade: e.Cascade, By: e.By, RequestedAt: e.At}
	if stays {
		c.Role, c.ExpiresAt, c.Extra = cmp.Or(e.Role, before.Role), before.ExpiresAt, before.Extra
		if e.Expiry != nil {
			c.ExpiresAt = e.Expiry.At
		}
		if !ok && sameGrant(before, c) {
			return nil, nil
		}
		if !ReducesMembership(m, c) {
			if err := outlasts(c, e.Author); err != nil && e.By == e.User {
				return nil, err
			}
			c.ValidUntil = e.Author.Until
		}
	}
	changes := without(o.Spec.MembershipChanges, e.User, "")
	if e.Cascade && !stays {
		// Nothing that gives them something in a Workspace is carried out after it, or again.
		changes = slices.DeleteFunc(changes, func(c v1alpha1.MembershipChange) bool { return c.User == e.User && !Removes(c) })
	}
	for _, c := range changes {
		if c.Workspace == "" && (!c.Role.AtLeast(v1alpha1.RoleAdmin) || c.ExpiresAt != nil) {
			delete(lasting, c.User)
		}
	}
	still := stillInWorkspaces(in, workspace)
	if stays || e.Cascade {
		still = nil
	}
	if others := len(o.Spec.MembershipChanges) - 1; len(still) == 0 && ok && sameGrant(pending, c) && (pending.Cascade || !e.Cascade) && len(changes) == others {
		return nil, nil
	}
	if HandOf(m).Role.AtLeast(v1alpha1.RoleAdmin) && len(lasting) == 0 && (!c.Role.AtLeast(v1alpha1.RoleAdmin) || c.ExpiresAt != nil) {
		// This is checked first, because a cascade cannot resolve it.
		only := "the only admin of this organization"
		if len(admins) > 0 {
			only += " whose membership does not end by time"
		}
		message := "user " + e.User + " is " + only + "; make somebody else an admin first, or delete the organization"
		return nil, errs.New(errs.Conflict, message, append([]errs.Cause{{Type: CauseSoleAdmin, Message: message}}, still...)...)
	}
	if len(still) > 0 {
		return nil, errs.New(errs.Conflict, "user "+e.User+" is still a member of workspaces of this organization; repeat the request with ?cascade=true to remove them there too", still...)
	}
	return append(changes, c), nil
}

// CheckStaysAdmin refuses what somebody asks for as an admin of an Organization whose removal or demotion was accepted.
func CheckStaysAdmin(o *v1alpha1.Organization, user string) error {
	if c, ok := ChangeOf(o, user, ""); ok && !HighestRole(ChangedMembership(nil, c)).AtLeast(v1alpha1.RoleAdmin) {
		return notAnAdminNow()
	}
	return nil
}

func notAnAdminNow() error {
	return errs.New(errs.Forbidden, "you are not an admin of this organization any more")
}

// LastingAdmin reports whether a Membership makes an admin by hand who does not end by time.
func LastingAdmin(m *v1alpha1.Membership) bool {
	hand := HandOf(m)
	return hand.Role.AtLeast(v1alpha1.RoleAdmin) && hand.ExpiresAt == nil
}

// checkGroups refuses a removal while a group gives something that would end with it.
func (e Ending) checkGroups(o *v1alpha1.Organization, before v1alpha1.MembershipChange, memberships []*v1alpha1.Membership) error {
	causes := byMapping(o, e.User, "", before.Extra)
	for _, m := range memberships {
		if e.Cascade && m.Spec.Scope == v1alpha1.ScopeWorkspace && m.Spec.UserRef.Name == e.User {
			causes = append(causes, byMapping(o, e.User, WorkspaceUUID(m), ExtrasOf(m))...)
		}
	}
	return givenByGroup(e.User, causes)
}

// ChangeApplies reports whether a change is still to be carried out on this Membership, or, if
// m is nil, on none. It is not if the Membership was created, recreated or changed after the
// decision.
func ChangeApplies(c v1alpha1.MembershipChange, m *v1alpha1.Membership) bool {
	if m == nil {
		return c.UID == ""
	}
	return m.UID == c.UID && m.Generation == c.Generation
}

// SameChange reports whether two changes are from one decision.
func SameChange(a, b v1alpha1.MembershipChange) bool {
	return a.User == b.User && a.Workspace == b.Workspace && a.UID == b.UID && a.RequestedAt.Equal(&b.RequestedAt)
}

// SameBotChange reports whether two changes are from one decision.
func SameBotChange(a, b v1alpha1.BotChange) bool {
	return a.Name == b.Name && a.UID == b.UID && a.RequestedAt.Equal(&b.RequestedAt)
}

// DecisionTime is the time of a decision, in the precision in which kcp stores it.
func DecisionTime(now time.Time) metav1.MicroTime {
	return metav1.NewMicroTime(now.Truncate(time.Microsecond))
}

// ChangeOf returns the pending change of the User's Membership in the Organization, or in its
// Workspace if workspace is not empty.
func ChangeOf(o *v1alpha1.Organization, user, workspace string) (v1alpha1.MembershipChange, bool) {
	return first(o.Spec.MembershipChanges, func(c v1alpha1.MembershipChange) bool {
		return c.User == user && c.Workspace == workspace
	})
}

// first returns the first element that is what is asked for.
func first[T any](all []T, is func(T) bool) (found T, ok bool) {
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i], true
	}
	return found, false
}

// without returns a copy of changes without that of one Membership.
func without(changes []v1alpha1.MembershipChange, user, workspace string) []v1alpha1.MembershipChange {
	return slices.DeleteFunc(slices.Clone(changes), func(c v1alpha1.MembershipChange) bool { return c.User == user && c.Workspace == workspace })
}

// NotAMember is the error for a User who is not a member.
func NotAMember(user string) error {
	return errs.New(errs.NotFound, "user "+user+" is not a member")
}

// stillInWorkspaces returns a cause for each Workspace that the User is a member of.
func stillInWorkspaces(workspaces []string, displayName func(uuid string) string) (causes []errs.Cause) {
	slices.Sort(workspaces)
	for _, uuid := range workspaces {
		causes = append(causes, errs.Cause{Type: CauseWorkspaceMembership, Field: uuid, Message: displayName(uuid)})
	}
	return causes
}

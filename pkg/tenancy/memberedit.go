package tenancy

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// MaxMemberships is the number of Memberships in Organizations and Workspaces that a User can
// have. More would make their UserMembershipIndex too large for kcp.
const MaxMemberships = 1000

// maxPendingGrants is the number of pending changes of an Organization above which it accepts only
// those that take rights away. The schema permits 1000, so grants never leave endings without room.
const maxPendingGrants = 500

// maxPendingChanges is the number of pending changes of an Organization that the schema permits.
const maxPendingChanges = 1000

// tooManyPending refuses a grant while the changes before it are not carried out.
func tooManyPending() error {
	return errs.New(errs.Unavailable,
		"many changes of this organization are still being carried out; try again").After(2 * time.Second)
}

// CauseTooManyMemberships is the cause of a refusal to add a User to one place more.
const CauseTooManyMemberships = "TooManyMemberships"

// MemberEdit is a request to add a User to an Organization or Workspace, to change what their
// Membership gives, or to remove them from a Workspace. Removals and demotions in the Organization
// are Endings.
type MemberEdit struct {
	User string
	// Workspace is the UUID of the Workspace; empty for the Organization.
	Workspace string
	// By is the name of the User who makes the request.
	By string
	// IdempotencyKey is the hash of the key of the request, or empty.
	IdempotencyKey string
	// Add requests a Membership that does not exist yet, or the part given by hand of one without it; Remove
	// requests its removal, which is refused while a group gives something, unless Everything is true.
	Add, Remove, Everything bool
	// Role is the role after the change; empty leaves it as it is. NoRole takes it away, which leaves a
	// manager.
	Role   v1alpha1.Role
	NoRole bool
	// Manager is that after the change. With nil it stays as it is.
	Manager *bool
	// AsManager is true if the author may not do more than a manager may.
	AsManager bool
	// Roles and Sudo are those after the change. With nil they stay as they are, unless the role is
	// lowered: then they are taken away.
	Roles *[]v1alpha1.RoleRef
	Sudo  *bool
	// Expiry is the end after the change. With nil it stays as it is.
	Expiry *Expiry
	// Extra are the parts after the change that were not given by hand. With nil they stay as they are.
	Extra *[]v1alpha1.MembershipExtra
	// Author is what entitles the User in By.
	Author Standing
	At     metav1.MicroTime
}

// DecideEdit returns spec.membershipChanges of the Organization with the new change, or nil if there
// is nothing to change. held is the Membership in kcp, read after o was, or nil if there is none.
func DecideEdit(o *v1alpha1.Organization, held *v1alpha1.Membership, e MemberEdit) ([]v1alpha1.MembershipChange, error) {
	before, pending := ChangeOf(o, e.User, e.Workspace)
	if pending = pending && ChangeApplies(before, held); !pending {
		before = v1alpha1.MembershipChange{}
		if held != nil {
			before = given(held)
		}
	}
	if e.AsManager && HighestRole(ChangedMembership(nil, before)).AtLeast(v1alpha1.RoleAdmin) {
		return nil, RoleTooLow("managers may not change what admins of the workspace have; ask an admin of it")
	}
	switch exists := pending || held != nil; {
	case !exists && !e.Add:
		return nil, NotAMember(e.User)
	case exists && Removes(before) && e.Remove:
		return nil, nil
	case exists && Removes(before):
		return nil, errs.New(errs.Conflict, "user "+e.User+" is being removed at the moment; add them again afterwards")
	case exists && !e.Remove && !e.Add && before.Role == "" && !before.Manager && e.Extra == nil:
		return nil, notByHand(e.User)
	case exists && e.Add && (before.Role != "" || before.Manager):
		if !sameGrant(before, e.change(v1alpha1.MembershipChange{})) && (held == nil || !MadeWith(held, e.By, e.IdempotencyKey)) {
			as := RoleText(before.Role, before.Manager)
			return nil, errs.New(errs.AlreadyExists, "user "+e.User+" is a member already, as "+as+"; change that with PATCH")
		}
		return nil, nil
	case exists && held == nil:
		return nil, errs.New(errs.Conflict, "user "+e.User+" is being added at the moment; repeat the request afterwards")
	}
	if e.Remove && !e.Everything {
		if err := givenByGroup(e.User, byMapping(o, e.User, e.Workspace, before.Extra)); err != nil {
			return nil, err
		}
	}
	c := e.change(before)
	if err := e.checkResult(c); err != nil {
		return nil, err
	}
	if e.AsManager && (c.Sudo || len(c.Roles) > 0) && endsLater(c.ExpiresAt, before.ExpiresAt) {
		return nil, RoleTooLow("managers may not prolong sudo or further roles; ask an admin of the workspace")
	}
	if e.By == e.User && (held == nil || !ReducesMembership(held, c)) {
		if err := outlasts(c, e.Author); err != nil {
			return nil, err
		}
	}
	if len(o.Spec.MembershipChanges) >= maxPendingGrants && (held == nil || !ReducesMembership(held, c)) {
		return nil, tooManyPending()
	}
	if held != nil {
		if !e.Remove && sameGrant(before, c) {
			return nil, nil
		}
		c.UID, c.Generation = held.UID, held.Generation
	}
	if held == nil || !ReducesMembership(held, c) {
		c.ValidUntil = e.Author.Until
	}
	return append(without(o.Spec.MembershipChanges, e.User, e.Workspace), c), nil
}

// outlasts refuses a change by which people give themselves, by hand, what lasts longer than the right by which they do. A right
// that is lent can be revoked at any moment, and what is by hand would stay.
func outlasts(c v1alpha1.MembershipChange, author Standing) error {
	message := "you cannot give yourself what lasts longer: ask another admin"
	switch {
	case author.Lent:
		message = "your right to do this is by a request or a group, and ends with it; " + message
	case author.ByHand != nil && endsLater(c.ExpiresAt, author.ByHand):
		message = "what you were given by hand ends at " + ExpiryText(author.ByHand) + "; " + message
	default:
		return nil
	}
	return errs.New(errs.Forbidden, message, errs.Cause{Type: CauseOwnRight, Message: message})
}

// CauseOwnRight is the cause of a refusal to prolong one's own right.
const CauseOwnRight = "OwnRight"

// change returns the change that the request makes of what a Membership gives before it.
func (e MemberEdit) change(before v1alpha1.MembershipChange) v1alpha1.MembershipChange {
	c := v1alpha1.MembershipChange{User: e.User, Workspace: e.Workspace, By: e.By, IdempotencyKey: e.IdempotencyKey, RequestedAt: e.At}
	if e.Remove {
		return c
	}
	c.Role, c.Roles, c.Sudo, c.ExpiresAt, c.Manager, c.Extra = before.Role, before.Roles, before.Sudo, before.ExpiresAt, before.Manager, before.Extra
	if e.Role != "" || e.NoRole {
		c.Role = e.Role
		if Lowers(before.Role, e.Role) {
			c.Roles, c.Sudo = nil, false
		}
	}
	if e.Manager != nil {
		c.Manager = *e.Manager
	}
	if e.Roles != nil {
		c.Roles = *e.Roles
	}
	if e.Sudo != nil {
		c.Sudo = *e.Sudo
	}
	if e.Expiry != nil {
		c.ExpiresAt = e.Expiry.At
	}
	if e.Extra != nil {
		c.Extra = *e.Extra
	}
	return c
}

// given returns what a Membership gives, as a change would.
func given(m *v1alpha1.Membership) v1alpha1.MembershipChange {
	hand := HandOf(m)
	return v1alpha1.MembershipChange{
		Role: hand.Role, Manager: m.Spec.Manager, Roles: m.Spec.Roles, Sudo: hand.Sudo, ExpiresAt: hand.ExpiresAt, Extra: ExtrasOf(m),
	}
}

func sameGrant(a, b v1alpha1.MembershipChange) bool {
	return a.Role == b.Role && a.Manager == b.Manager && a.Sudo == b.Sudo && a.ExpiresAt.Equal(b.ExpiresAt) && len(a.Roles) == len(b.Roles) &&
		!slices.ContainsFunc(a.Roles, func(r v1alpha1.RoleRef) bool { return !slices.Contains(b.Roles, r) }) &&
		len(a.Extra) == len(b.Extra) && !moreExtra(b.Extra, a.Extra)
}

// moreExtra reports whether a part is in the second list and not in the first.
func moreExtra(than, extra []v1alpha1.MembershipExtra) bool {
	return slices.ContainsFunc(extra, func(x v1alpha1.MembershipExtra) bool {
		return !slices.ContainsFunc(than, func(o v1alpha1.MembershipExtra) bool {
			return o.Source == x.Source && o.Role == x.Role && o.Sudo == x.Sudo && o.ExpiresAt.Equal(x.ExpiresAt)
		})
	})
}

// ChangedMembership returns the Membership that a change creates or, with held, makes of it.
func ChangedMembership(held *v1alpha1.Membership, c v1alpha1.MembershipChange) *v1alpha1.Membership {
	if held == nil {
		m := NewWorkspaceMembership(c.User, c.Workspace, c.Role, c.Roles, c.Sudo)
		m.Spec.ExpiresAt, m.Spec.Manager, m.Spec.Extra = c.ExpiresAt, c.Manager, c.Extra
		Keyed(m, c.By, c.IdempotencyKey)
		return m
	}
	m := held.DeepCopy()
	m.Spec.Role, m.Spec.Roles, m.Spec.Sudo, m.Spec.ExpiresAt, m.Spec.Manager, m.Spec.Extra = c.Role, c.Roles, c.Sudo, c.ExpiresAt, c.Manager, c.Extra
	return m
}

// ReducesMembership reports whether a change takes rights of a Membership away, and gives none.
func ReducesMembership(m *v1alpha1.Membership, c v1alpha1.MembershipChange) bool {
	hand := HandOf(m)
	more := slices.ContainsFunc(c.Roles, func(r v1alpha1.RoleRef) bool { return !slices.Contains(m.Spec.Roles, r) })
	// What is taken away has no end.
	longer := (c.Role != "" || c.Manager) && endsLater(c.ExpiresAt, hand.ExpiresAt)
	return hand.Role.AtLeast(c.Role) && !more && !longer && (hand.Sudo || !c.Sudo) && (m.Spec.Manager || !c.Manager) && !moreExtra(ExtrasOf(m), c.Extra)
}

// WithCreator returns spec.membershipChanges of the Organization with the Membership of the person who
// claims a Workspace: they become its admin, unless they are removed from the Organization before.
// until is the end of their right to make it, or nil; what they get in it ends then, too. byGroup is the
// source of that right if a group alone gives it, or empty: what they get then stays and goes with the group.
func WithCreator(o *v1alpha1.Organization, claim v1alpha1.Claim, until *metav1.Time, byGroup string) ([]v1alpha1.MembershipChange, error) {
	if len(o.Spec.MembershipChanges) >= maxPendingGrants {
		return nil, tooManyPending()
	}
	by := claim.Request.CreatedBy
	c := v1alpha1.MembershipChange{
		User: by, Workspace: claim.UUID, Role: v1alpha1.RoleAdmin, ExpiresAt: until, By: by, ValidUntil: until,
		RequestedAt: metav1.NewMicroTime(claim.Request.RequestedAt.Time),
	}
	if byGroup != "" {
		c.Role, c.ExpiresAt = "", nil
		c.Extra = []v1alpha1.MembershipExtra{{Source: byGroup, Role: v1alpha1.RoleAdmin, ExpiresAt: until}}
	}
	return append(without(o.Spec.MembershipChanges, by, claim.UUID), c), nil
}

// CarriedOut reports whether a Membership gives what a change says.
func CarriedOut(m *v1alpha1.Membership, c v1alpha1.MembershipChange) bool {
	return sameGrant(given(m), c)
}

// CheckMemberships refuses to add a User who has as many Memberships as a User can have. entries
// are the rows of their index.
func CheckMemberships(user string, entries []v1alpha1.MembershipIndexEntry) error {
	if len(entries) < MaxMemberships {
		return nil
	}
	message := "user " + user + " has as many memberships as a person can have; ask them to leave an organization or workspace that they do not need any more"
	return errs.New(errs.Conflict, message, errs.Cause{Type: CauseTooManyMemberships, Field: "userRef.name", Message: message})
}

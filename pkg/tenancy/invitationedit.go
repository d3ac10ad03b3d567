package tenancy

import (
	"cmp"
	"slices"
	"time"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

const (
	// MaxOpenInvitations is the number of open Invitations that an Organization can have.
	MaxOpenInvitations = 100
	// maxInvitations is the number of all that it can have, those that ended lately included, and maxInvitationsOfOne
	// the number of those by one person: nobody uses up what all have.
	maxInvitations, maxInvitationsOfOne = 1000, 500
	// maxPendingInvitations is the number of pending changes of Invitations above which an Organization
	// accepts no new Invitation. The schema permits 500, so there is room for answers.
	maxPendingInvitations = 250
)

// InvitationChangeOf returns the pending change of the Invitation of that name.
func InvitationChangeOf(o *v1alpha1.Organization, name string) (v1alpha1.InvitationChange, bool) {
	return first(o.Spec.InvitationChanges, func(c v1alpha1.InvitationChange) bool { return c.Name == name })
}

// SameInvitationChange reports whether two changes are from one decision.
func SameInvitationChange(a, b v1alpha1.InvitationChange) bool {
	return a.Name == b.Name && a.RequestedAt.Equal(&b.RequestedAt)
}

// DecideInvitation returns spec.invitationChanges of the Organization with a new Invitation, or nil if
// an earlier attempt made it. all are the Invitations in kcp, listed after o was read: what was created before is among
// them or pending in o, so that concurrent requests cannot exceed the quota.
func DecideInvitation(o *v1alpha1.Organization, all []v1alpha1.Invitation, c v1alpha1.InvitationChange, now time.Time) ([]v1alpha1.InvitationChange, error) {
	open, own, there := 0, 0, map[string]string{}
	for i := range all {
		there[all[i].Name] = all[i].Spec.SecretHash
		if all[i].Spec.InvitedBy.Name == c.Invitation.InvitedBy.Name {
			own++
		}
		if InvitationStateAt(&all[i], now) == v1alpha1.InvitationOpen {
			open++
		}
	}
	for _, pending := range o.Spec.InvitationChanges {
		if pending.Invitation != nil && there[pending.Name] == "" {
			there[pending.Name] = pending.Invitation.SecretHash
			open++
			if pending.Invitation.InvitedBy.Name == c.Invitation.InvitedBy.Name {
				own++
			}
		}
	}
	switch there[c.Name] {
	case "":
	case c.Invitation.SecretHash:
		return nil, nil
	default:
		return nil, errs.New(errs.Conflict, "the invitation "+c.Name+" was made with this Idempotency-Key; only the answer to the first request had its link")
	}
	if err := checkQuota(MaxOpenInvitations, open, "this organization has %d of at most %d open invitations; revoke one that is not needed any more"); err != nil {
		return nil, err
	}
	const rest = " of at most %d invitations, those that ended lately included; wait until the hub has removed some"
	err := cmp.Or(checkQuota(maxInvitationsOfOne, own, "you made %d"+rest), checkQuota(maxInvitations, len(there), "this organization has %d"+rest))
	if err != nil {
		return nil, err
	}
	if len(o.Spec.InvitationChanges) >= maxPendingInvitations {
		return nil, tooManyPending()
	}
	return append(slices.Clone(o.Spec.InvitationChanges), c), nil
}

// DecideAnswer returns spec.invitationChanges of the Organization with an answer to an Invitation or a
// sign-up with it, or nil if the same was decided before. held is the Invitation in kcp, read after o was,
// or nil if there is none. The Invitation must be open: of two answers at the same time one is decided.
func DecideAnswer(o *v1alpha1.Organization, held *v1alpha1.Invitation, c v1alpha1.InvitationChange, now time.Time) ([]v1alpha1.InvitationChange, error) {
	if held == nil || !held.DeletionTimestamp.IsZero() {
		return nil, NoSuchInvitation()
	}
	pending, _ := InvitationChangeOf(o, held.Name)
	before := held.DeepCopy()
	before.Status = ChangedInvitation(held, pending)
	switch state := InvitationStateAt(before, now); {
	case state == v1alpha1.InvitationRevoked && c.State == state:
		return nil, nil
	case state != v1alpha1.InvitationOpen:
		return nil, NotOpen(state)
	case c.SignedUp != "" && before.Status.SignedUp == c.SignedUp:
		return nil, nil
	case c.SignedUp != "" && before.Status.SignedUp != "":
		// Another person signed up with it.
		return nil, NotOpen(v1alpha1.InvitationAccepted)
	}
	c.SignedUp = cmp.Or(c.SignedUp, pending.SignedUp)
	others := slices.DeleteFunc(slices.Clone(o.Spec.InvitationChanges), func(o v1alpha1.InvitationChange) bool { return o.Name == c.Name })
	return append(others, c), nil
}

// DecideAcceptance returns spec.invitationChanges and spec.membershipChanges of the Organization with the
// acceptance of an Invitation by c.By, or nil if the person accepted it before and is a member still. held
// is the person's Membership in kcp, read after o was, or nil if there is none. judge refuses what the inviter may not
// give any more, and returns what entitles them: nobody prolongs that by an invitation of their own.
func DecideAcceptance(
	o *v1alpha1.Organization, i *v1alpha1.Invitation, held *v1alpha1.Membership, c v1alpha1.InvitationChange, now time.Time,
	judge func() (Standing, error),
) ([]v1alpha1.InvitationChange, []v1alpha1.MembershipChange, error) {
	if i == nil {
		return nil, nil, NoSuchInvitation()
	}
	if held != nil {
		if held = EffectiveAt(held, now); held == nil {
			return nil, nil, errs.New(errs.Conflict, "your membership there has ended and is being removed at the moment; try again")
		}
	}
	member, role := hasPlace(o, held, c.By, InvitedWorkspace(i.Spec))
	pending, _ := InvitationChangeOf(o, i.Name)
	if s := ChangedInvitation(i, pending); s.State == v1alpha1.InvitationAccepted && s.AcceptedBy == c.By && member {
		return nil, nil, nil
	}
	answers, err := DecideAnswer(o, i, c, now)
	switch {
	case err != nil:
		return nil, nil, err
	case member:
		return nil, nil, AlreadyMember(role)
	}
	author, err := judge()
	if err != nil {
		return nil, nil, err
	}
	changes, err := DecideEdit(o, held, MemberEdit{
		User: c.By, Workspace: InvitedWorkspace(i.Spec), By: i.Spec.InvitedBy.Name, Add: true, Role: i.Spec.Role, At: c.RequestedAt,
		Expiry: &Expiry{At: i.Spec.MembershipExpiresAt}, Author: author,
	})
	return answers, changes, err
}

// hasPlace reports whether a User is a member of an Organization or Workspace, or is about to be, and with
// which role.
func hasPlace(o *v1alpha1.Organization, held *v1alpha1.Membership, user, workspace string) (bool, string) {
	if pending, ok := ChangeOf(o, user, workspace); ok && ChangeApplies(pending, held) {
		return !Removes(pending), RoleText(HighestRole(ChangedMembership(nil, pending)), pending.Manager)
	}
	if held == nil {
		return false, ""
	}
	return true, RoleText(held.Spec.Role, held.Spec.Manager)
}

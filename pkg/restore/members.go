package restore

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// member has the Organization decide what a Step takes from a Membership. The Step is done when its controller has
// carried that out. That the Organization may be left without an admin is no reason to keep somebody who was removed.
func (p *pass) member(ctx context.Context, s Step) error {
	return p.within(ctx, s, func(org tenancy.Org) error {
		if org.Deleted() {
			return p.memberOfDeleted(ctx, org, s)
		}
		return p.memberOf(ctx, org, s)
	})
}

func (p *pass) memberOf(ctx context.Context, org tenancy.Org, s Step) error {
	at, err := p.listed(ctx, org)
	if err != nil {
		return err
	}
	if s.Facts.Cascade {
		waits := false
		for _, m := range at.members[s.Object] {
			if m.Spec.Scope != v1alpha1.ScopeWorkspace {
				continue
			}
			waits = true
			one := s
			one.Workspace, one.Facts.Cascade = tenancy.WorkspaceUUID(m), false
			if _, err := p.decide(ctx, at, one, m); err != nil {
				return err
			}
		}
		if waits {
			// Those in Workspaces are removed before the one in the Organization.
			return errNotYet
		}
	}
	done, err := p.decide(ctx, at, s, at.member(s.Object, s.Workspace))
	if err == nil && !done {
		err = errNotYet
	}
	return err
}

// decide has the Organization accept what a Step takes from a Membership, and reports whether there is nothing left to
// take. That is judged by the Organization as it was before the Memberships were read: what it had to carry out then may be
// carried out since, and not be in the list.
func (p *pass) decide(ctx context.Context, at *place, s Step, held *v1alpha1.Membership) (done bool, err error) {
	now := tenancy.DecisionTime(p.Clock.Now())
	if _, pending, ok := editOf(at.read, held, s, now); !ok && !disowns(at.now, at, s) {
		return !pending, nil
	}
	return false, p.write(s, func() error {
		return p.change(ctx, at, func(_ context.Context, o *v1alpha1.Organization) error {
			if disowns(o, at, s) {
				delete(o.Annotations, v1alpha1.CreatedByAnnotation)
			}
			e, _, ok := editOf(o, held, s, now)
			if !ok {
				return nil
			}
			changes, err := tenancy.DecideEdit(o, held, e)
			if changes != nil {
				o.Spec.MembershipChanges = changes
			}
			return err
		})
	})
}

// disowns reports whether a Step takes the creator's name from an Organization. The hub makes the creator admin where no
// Membership was made yet, and again where none is left, which requests prevent and a restore does not: others who are
// admins may be lost. So the name stays only beside a Membership of the creator that is as good and does not end. It goes
// before anything is removed, so nothing depends on the order in which several people are.
func disowns(o *v1alpha1.Organization, at *place, s Step) bool {
	creator := o.Annotations[v1alpha1.CreatedByAnnotation]
	_, ends := endOf(s.Facts)
	ends = ends || s.Kind == RemoveMember
	if creator == "" || s.Workspace != "" {
		return false
	}
	if s.Object == creator {
		return ends || s.Facts.Role != "" && !v1alpha1.Role(s.Facts.Role).AtLeast(v1alpha1.RoleAdmin)
	}
	if !ends || at.member(s.Object, "") == nil {
		return false
	}
	m := at.member(creator, "")
	if m == nil {
		return true
	}
	hand := tenancy.HandOf(m)
	return hand.Role == "" || hand.ExpiresAt != nil || !o.Spec.Personal && !hand.Role.AtLeast(v1alpha1.RoleAdmin)
}

// editOf returns the edit that a Step makes. ok is false if there is none to make: nothing is left to take, or what the
// Organization has decided about the Membership is to be carried out first, which pending says.
func editOf(o *v1alpha1.Organization, held *v1alpha1.Membership, s Step, now metav1.MicroTime) (e tenancy.MemberEdit, pending, ok bool) {
	before, pending := tenancy.ChangeOf(o, s.Object, s.Workspace)
	pending = pending && tenancy.ChangeApplies(before, held)
	switch {
	case held == nil, pending && tenancy.Removes(before):
		return e, pending, false
	case !pending:
		before = givenBy(held)
	}
	e, ok = s.MemberEdit(before, now)
	return e, pending, ok
}

// givenBy returns what a Membership gives, as a change would.
func givenBy(m *v1alpha1.Membership) v1alpha1.MembershipChange {
	return v1alpha1.MembershipChange{
		Role: m.Spec.Role, Manager: m.Spec.Manager, Sudo: m.Spec.Sudo, Roles: m.Spec.Roles, ExpiresAt: m.Spec.ExpiresAt, Extra: m.Spec.Extra,
	}
}

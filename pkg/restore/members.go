package restore

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// member has the Organization decide what a Step takes from a Membership. The Step is done when its controller has
// carried that out. That the Organization may be left without an admin is no reason to keep somebody who was removed.
func (a *Applier) member(ctx context.Context, s Step) error {
	return a.within(ctx, s, func(org tenancy.Org) error {
		if org.Deleted() {
			return a.memberOfDeleted(ctx, org, s)
		}
		return a.memberOf(ctx, org, s)
	})
}

func (a *Applier) memberOf(ctx context.Context, org tenancy.Org, s Step) error {
	all, err := a.Store.ListMemberships(ctx, org.ClusterID)
	if err != nil {
		return err
	}
	if s.Facts.Cascade {
		waits := false
		for i := range all {
			m := &all[i]
			if m.Spec.UserRef.Name != s.Object || m.Spec.Scope != v1alpha1.ScopeWorkspace {
				continue
			}
			waits = true
			one := s
			one.Workspace, one.Facts.Cascade = tenancy.WorkspaceUUID(m), false
			if _, err := a.decide(ctx, org, one, m, all); err != nil {
				return err
			}
		}
		if waits {
			// Those in Workspaces are removed before the one in the Organization.
			return errNotYet
		}
	}
	var held *v1alpha1.Membership
	if i := slices.IndexFunc(all, func(m v1alpha1.Membership) bool { return m.Name == tenancy.MembershipName(s.Object, s.Workspace) }); i >= 0 {
		held = &all[i]
	}
	done, err := a.decide(ctx, org, s, held, all)
	if err == nil && !done {
		err = errNotYet
	}
	return err
}

// decide has the Organization accept what a Step takes from a Membership, and reports whether there is nothing left to
// take. all are the Memberships of the Organization.
func (a *Applier) decide(ctx context.Context, org tenancy.Org, s Step, held *v1alpha1.Membership, all []v1alpha1.Membership) (done bool, err error) {
	now := tenancy.DecisionTime(a.Clock.Now())
	current, err := a.Store.GetOrganization(ctx, org.UUID())
	if errs.Is(err, errs.NotFound) {
		return false, notThere("the organization")
	}
	if err != nil {
		return false, err
	}
	if _, pending, ok := editOf(current, held, s, now); !ok && !disowns(current, all, s) {
		return !pending, nil
	}
	return false, a.write(s, func() error {
		_, err := a.Store.ChangeOrganization(ctx, current, nil, func(_ context.Context, o *v1alpha1.Organization) error {
			if disowns(o, all, s) {
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
		return err
	})
}

// disowns reports whether a Step takes the creator's name from an Organization. The hub makes the creator admin where no
// Membership was made yet, and again where none is left, which requests prevent and a restore does not: others who are
// admins may be lost. So the name stays only beside a Membership of the creator that is as good and does not end. It goes
// before anything is removed, so nothing depends on the order in which several people are.
func disowns(o *v1alpha1.Organization, all []v1alpha1.Membership, s Step) bool {
	creator := o.Annotations[v1alpha1.CreatedByAnnotation]
	_, ends := endOf(s.Facts)
	ends = ends || s.Kind == RemoveMember
	if creator == "" || s.Workspace != "" {
		return false
	}
	if s.Object == creator {
		return ends || s.Facts.Role != "" && !v1alpha1.Role(s.Facts.Role).AtLeast(v1alpha1.RoleAdmin)
	}
	isThere, creatorStays := false, false
	for _, m := range all {
		if m.Spec.Scope != v1alpha1.ScopeOrg {
			continue
		}
		isThere = isThere || m.Spec.UserRef.Name == s.Object
		hand := tenancy.HandOf(&m)
		creatorStays = creatorStays || m.Spec.UserRef.Name == creator && hand.Role != "" && hand.ExpiresAt == nil &&
			(o.Spec.Personal || hand.Role.AtLeast(v1alpha1.RoleAdmin))
	}
	return ends && isThere && !creatorStays
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

package restore

import (
	"context"
	"slices"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// memberOfDeleted takes from a Membership of a soft-deleted Organization what a Step takes. Its controller carries out
// nothing until the Organization is undeleted, and then everybody is back first: so the Membership itself is changed.
func (p *pass) memberOfDeleted(ctx context.Context, org tenancy.Org, s Step) error {
	at, err := p.listed(ctx, org)
	if err != nil {
		return err
	}
	means := func(user, workspace string) bool {
		return user == s.Object && (workspace == s.Workspace || s.Facts.Cascade && s.Workspace == "")
	}
	// What was granted and not carried out must not come with the undeletion.
	void := func(c v1alpha1.MembershipChange) bool { return means(c.User, c.Workspace) && !tenancy.Removes(c) }
	now := tenancy.DecisionTime(p.Clock.Now())
	var taken []func() error
	for _, m := range at.members[s.Object] {
		if !means(m.Spec.UserRef.Name, tenancy.WorkspaceUUID(m)) {
			continue
		}
		one := s
		one.Workspace, one.Facts.Cascade = tenancy.WorkspaceUUID(m), false
		e, ok := one.MemberEdit(givenBy(m), now)
		if !ok {
			continue
		}
		changes, err := tenancy.DecideEdit(&v1alpha1.Organization{}, m, e)
		if err != nil {
			return err
		}
		for _, c := range changes {
			taken = append(taken, func() error { return p.takeFrom(ctx, at, m, c) })
		}
	}
	if len(taken) == 0 && !disowns(at.now, at, s) && !slices.ContainsFunc(at.now.Spec.MembershipChanges, void) {
		return nil
	}
	return p.write(s, func() error {
		err := p.change(ctx, at, func(_ context.Context, o *v1alpha1.Organization) error {
			if disowns(o, at, s) {
				delete(o.Annotations, v1alpha1.CreatedByAnnotation)
			}
			o.Spec.MembershipChanges = slices.DeleteFunc(o.Spec.MembershipChanges, void)
			return nil
		})
		for _, take := range taken {
			if err == nil {
				err = take()
			}
		}
		return err
	})
}

// takeFrom carries out a change of a Membership that takes something from it.
func (p *pass) takeFrom(ctx context.Context, at *place, m *v1alpha1.Membership, c v1alpha1.MembershipChange) error {
	if tenancy.Removes(c) {
		err := p.Store.DeleteMembership(ctx, at.cluster, m)
		if err == nil {
			at.remove(m)
		}
		return err
	}
	changed, err := p.Store.ChangeMembership(ctx, at.cluster, m, nil, func(_ context.Context, now *v1alpha1.Membership) error {
		now.Spec = tenancy.ChangedMembership(now, c).Spec
		return nil
	})
	if err == nil {
		// What follows takes from what is left.
		*m = *changed
	}
	return err
}

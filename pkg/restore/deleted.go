package restore

import (
	"context"
	"slices"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// memberOfDeleted takes from a Membership of a soft-deleted Organization what a Step takes. Its controller carries out
// nothing until the Organization is undeleted, and then everybody is back first: so the Membership itself is changed.
func (a *Applier) memberOfDeleted(ctx context.Context, org tenancy.Org, s Step) error {
	all, err := a.Store.ListMemberships(ctx, org.ClusterID)
	if err != nil {
		return err
	}
	current, err := a.Store.GetOrganization(ctx, org.UUID())
	if err != nil {
		return err
	}
	means := func(user, workspace string) bool {
		return user == s.Object && (workspace == s.Workspace || s.Facts.Cascade && s.Workspace == "")
	}
	// What was granted and not carried out must not come with the undeletion.
	void := func(c v1alpha1.MembershipChange) bool { return means(c.User, c.Workspace) && !tenancy.Removes(c) }
	now := tenancy.DecisionTime(a.Clock.Now())
	var taken []func() error
	for i := range all {
		m := &all[i]
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
			taken = append(taken, func() error { return a.carryOut(ctx, org.ClusterID, m, c) })
		}
	}
	if len(taken) == 0 && !disowns(current, all, s) && !slices.ContainsFunc(current.Spec.MembershipChanges, void) {
		return nil
	}
	return a.write(s, func() error {
		_, err := a.Store.ChangeOrganization(ctx, current, nil, func(_ context.Context, o *v1alpha1.Organization) error {
			if disowns(o, all, s) {
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

// carryOut makes a change of a Membership that takes something from it.
func (a *Applier) carryOut(ctx context.Context, cluster string, m *v1alpha1.Membership, c v1alpha1.MembershipChange) error {
	if tenancy.Removes(c) {
		return a.Store.DeleteMembership(ctx, cluster, m)
	}
	_, err := a.Store.ChangeMembership(ctx, cluster, m, nil, func(_ context.Context, now *v1alpha1.Membership) error {
		now.Spec = tenancy.ChangedMembership(now, c).Spec
		return nil
	})
	return err
}

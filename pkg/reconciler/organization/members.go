package organization

import (
	"context"
	"slices"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// members carries out the removals and demotions that were decided (O-9): first
// what a person has in Workspaces, then what they have in the Org, so that who
// still has something is still shown to have it. It can be stopped anywhere and
// goes on from there.
type members struct {
	place place
	// list reads the Org's Memberships from kcp itself.
	list func(ctx context.Context, cluster string) ([]v1alpha1.Membership, error)
	// remove and demote change the very Membership that they are given, or fail with
	// controller.ErrRetry.
	remove func(ctx context.Context, cluster string, m *v1alpha1.Membership) error
	demote func(ctx context.Context, cluster string, m *v1alpha1.Membership, role v1alpha1.Role) error
}

func (*members) Condition() string { return v1alpha1.ConditionMembersChanged }

func (s *members) Reconcile(ctx context.Context, org *v1alpha1.Organization) (controller.Result, error) {
	if len(org.Spec.MembershipChanges) == 0 {
		return controller.Result{}, nil
	}
	cluster, ok := s.place(org.Name)
	if !ok {
		return controller.Result{Message: "members change once the organization's workspace is there"}, nil
	}
	held, err := s.list(ctx, cluster)
	if err != nil {
		return controller.Result{}, err
	}
	var left []v1alpha1.MembershipChange
	var failed error
	for _, c := range org.Spec.MembershipChanges {
		if err := s.carryOut(ctx, cluster, c, held); err != nil {
			left, failed = append(left, c), err
		}
	}
	org.Spec.MembershipChanges = left
	return controller.Result{}, failed
}

func (s *members) carryOut(ctx context.Context, cluster string, c v1alpha1.MembershipChange, held []v1alpha1.Membership) error {
	i := slices.IndexFunc(held, func(m v1alpha1.Membership) bool {
		return m.Spec.Scope == v1alpha1.ScopeOrg && m.Spec.UserRef.Name == c.User
	})
	if i < 0 || !tenancy.ChangeApplies(c, &held[i]) {
		return nil
	}
	if c.Role != "" {
		return s.demote(ctx, cluster, &held[i], c.Role)
	}
	if c.Cascade {
		for j := range held {
			if m := &held[j]; m.Spec.Scope == v1alpha1.ScopeWorkspace && m.Spec.UserRef.Name == c.User {
				if err := s.remove(ctx, cluster, m); err != nil {
					return err
				}
			}
		}
	}
	return s.remove(ctx, cluster, &held[i])
}

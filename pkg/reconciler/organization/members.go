package organization

import (
	"context"
	"slices"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// members carries out the removals and demotions of spec.membershipChanges (O-9). It
// removes the Memberships of a person in child Workspaces before the one in the
// Organization, so that a person with a right left is still listed. It can be
// interrupted anywhere.
type members struct {
	cluster clusterFunc
	// list reads the Organization's Memberships from kcp itself.
	list func(ctx context.Context, cluster string) ([]v1alpha1.Membership, error)
	// remove and setRole change just this version of a Membership; otherwise they fail
	// with controller.ErrRetry.
	remove  func(ctx context.Context, cluster string, m *v1alpha1.Membership) error
	setRole func(ctx context.Context, cluster string, m *v1alpha1.Membership, role v1alpha1.Role) error
}

func (*members) Condition() string { return v1alpha1.ConditionMembersChanged }

func (s *members) Reconcile(ctx context.Context, org *v1alpha1.Organization) (controller.Result, error) {
	if len(org.Spec.MembershipChanges) == 0 {
		return controller.Result{}, nil
	}
	cluster, ok := s.cluster(org.Name)
	if !ok {
		return controller.Result{Message: "members change once the organization's workspace exists"}, nil
	}
	memberships, err := s.list(ctx, cluster)
	if err != nil {
		return controller.Result{}, err
	}
	var left []v1alpha1.MembershipChange
	var failed error
	for _, c := range org.Spec.MembershipChanges {
		if err := s.carryOut(ctx, cluster, c, memberships); err != nil {
			left, failed = append(left, c), err
		}
	}
	org.Spec.MembershipChanges = left
	return controller.Result{}, failed
}

func (s *members) carryOut(ctx context.Context, cluster string, c v1alpha1.MembershipChange, memberships []v1alpha1.Membership) error {
	i := slices.IndexFunc(memberships, func(m v1alpha1.Membership) bool {
		return m.Spec.Scope == v1alpha1.ScopeOrg && m.Spec.UserRef.Name == c.User
	})
	if i < 0 || !tenancy.ChangeApplies(c, &memberships[i]) {
		return nil
	}
	if c.Role != "" {
		return s.setRole(ctx, cluster, &memberships[i], c.Role)
	}
	if c.Cascade {
		for j := range memberships {
			if m := &memberships[j]; m.Spec.Scope == v1alpha1.ScopeWorkspace && m.Spec.UserRef.Name == c.User {
				if err := s.remove(ctx, cluster, m); err != nil {
					return err
				}
			}
		}
	}
	return s.remove(ctx, cluster, &memberships[i])
}

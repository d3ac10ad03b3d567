package organization

import (
	"context"
	"slices"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// members carries out spec.membershipChanges and spec.botChanges (O-9), each list in the order in
// which its changes were accepted, and bots first: what a person granted before their own removal
// is there before the removal is answered. It removes the Memberships of a person in child
// Workspaces before the one in the Organization, so that a person with a right left is still
// listed. It can be interrupted anywhere.
type members struct {
	cluster clusterFunc
	// current reads the Organization from kcp itself.
	current current
	// list reads the Organization's Memberships from kcp itself.
	list   func(ctx context.Context, cluster string) ([]*v1alpha1.Membership, error)
	create func(ctx context.Context, cluster string, m *v1alpha1.Membership) error
	// remove and set change just this version of a Membership; otherwise they fail
	// with controller.ErrRetry.
	remove func(ctx context.Context, cluster string, m *v1alpha1.Membership) error
	set    func(ctx context.Context, cluster string, m *v1alpha1.Membership, c v1alpha1.MembershipChange) error
	bot    func(ctx context.Context, cluster string, c v1alpha1.BotChange) error
}

func (*members) Condition() string { return v1alpha1.ConditionMembersChanged }

func (s *members) Reconcile(ctx context.Context, org *v1alpha1.Organization) (controller.Result, error) {
	changes, bots := org.Spec.MembershipChanges, org.Spec.BotChanges
	if len(changes) == 0 && len(bots) == 0 {
		return controller.Result{}, nil
	}
	cluster, ok := s.cluster(org.Name)
	if !ok {
		return controller.Result{Message: "members change once the organization's workspace exists"}, nil
	}
	now := org.DeepCopy()
	if len(bots) > 0 || slices.ContainsFunc(changes, func(c v1alpha1.MembershipChange) bool { return c.UID == "" }) {
		// A cache that is behind can show a change that was carried out, and undone since.
		var err error
		if now, err = s.current(ctx, org); err != nil {
			return controller.Result{}, err
		}
	}
	var failed error
	org.Spec.BotChanges = nil
	for _, c := range bots {
		if !slices.ContainsFunc(now.Spec.BotChanges, func(o v1alpha1.BotChange) bool { return tenancy.SameBotChange(o, c) }) {
			continue
		}
		if err := s.bot(ctx, cluster, c); err != nil {
			org.Spec.BotChanges, failed = append(org.Spec.BotChanges, c), err
		}
	}
	if len(changes) == 0 {
		return controller.Result{}, failed
	}
	held, err := s.list(ctx, cluster)
	if err != nil {
		return controller.Result{}, err
	}
	org.Spec.MembershipChanges = nil
	for _, c := range changes {
		if o, ok := tenancy.ChangeOf(now, c.User, c.Workspace); !ok || !tenancy.SameChange(o, c) {
			continue
		}
		if held, err = s.carryOut(ctx, cluster, c, held); err != nil {
			org.Spec.MembershipChanges, failed = append(org.Spec.MembershipChanges, c), err
			continue
		}
		if !c.Role.AtLeast(v1alpha1.RoleAdmin) {
			s.void(org, c)
		}
	}
	return controller.Result{}, failed
}

// void drops what the person of a removal or demotion granted to others before, and what could not
// be carried out yet.
func (*members) void(org *v1alpha1.Organization, c v1alpha1.MembershipChange) {
	org.Spec.BotChanges = slices.DeleteFunc(org.Spec.BotChanges, func(o v1alpha1.BotChange) bool { return o.By == c.User })
	org.Spec.MembershipChanges = slices.DeleteFunc(org.Spec.MembershipChanges, func(o v1alpha1.MembershipChange) bool {
		return o.By == c.User && o.User != c.User && o.Role != ""
	})
}

// carryOut returns the Memberships after the change.
func (s *members) carryOut(ctx context.Context, cluster string, c v1alpha1.MembershipChange, held []*v1alpha1.Membership) ([]*v1alpha1.Membership, error) {
	i := slices.IndexFunc(held, func(m *v1alpha1.Membership) bool {
		return m.Spec.UserRef.Name == c.User && tenancy.WorkspaceUUID(m) == c.Workspace
	})
	var m *v1alpha1.Membership
	if i >= 0 {
		m = held[i]
	}
	switch {
	case !tenancy.ChangeApplies(c, m):
		return held, nil
	case m == nil:
		made := tenancy.ChangedMembership(nil, c)
		return append(held, made), s.create(ctx, cluster, made)
	case c.Role != "":
		return held, s.set(ctx, cluster, m, c)
	}
	if c.Cascade {
		for _, along := range held {
			if along.Spec.Scope == v1alpha1.ScopeWorkspace && along.Spec.UserRef.Name == c.User {
				if err := s.remove(ctx, cluster, along); err != nil {
					return held, err
				}
			}
		}
	}
	return held, s.remove(ctx, cluster, m)
}

package organization

import (
	"context"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// unboundEvery is the interval in which the step looks whether bindings are removed.
const unboundEvery = 200 * time.Millisecond

// members carries out spec.membershipChanges and spec.botChanges (O-9), each list in the order in
// which its changes were accepted, and bots first: what a person granted before their own removal
// is there before the removal is answered. It removes the Memberships of a person in child
// Workspaces before the one in the Organization, so that a person with a right left is still
// listed. It can be interrupted anywhere.
//
// What its author could not grant any more, because their own right has ended by time, is dropped. A
// Membership that has ended by time is removed by such a change, too: the Organization gets another
// version, so that no write that was judged before the end is stored later. It is removed after its
// bindings are.
type members struct {
	cluster     clusterFunc
	orgs        organizations
	memberships objects.Memberships
	changes     audited
	bots        objects.Bots
	// clock is the time by which rights end.
	clock clock.PassiveClock
	// expired is that of the Views, and followed that of the Config.
	expired  func(orgCluster string) []*v1alpha1.Membership
	followed func(org, workspace, user string) bool
}

func (*members) Condition() string { return v1alpha1.ConditionMembersChanged }

func (s *members) Reconcile(ctx context.Context, org *v1alpha1.Organization) (result controller.Result, err error) {
	cluster, ok := s.cluster(org.Name)
	changes, bots := org.Spec.MembershipChanges, org.Spec.BotChanges
	switch {
	case len(changes) == 0 && len(bots) == 0:
	case !ok:
		return controller.Result{Message: "members change once the organization's workspace exists"}, nil
	default:
		err = s.carryOutAll(ctx, org, cluster)
	}
	if !ok {
		return controller.Result{}, nil
	}
	return s.expire(org, cluster), err
}

// expire accepts the removal of Memberships that have ended by time, also while a change before it fails. It is carried out
// by the next pass.
func (s *members) expire(org *v1alpha1.Organization, cluster string) (result controller.Result) {
	ended := s.expired(cluster)
	unbound := slices.DeleteFunc(slices.Clone(ended), func(m *v1alpha1.Membership) bool { return !s.followed(org.Name, "", m.Spec.UserRef.Name) })
	if len(unbound) < len(ended) {
		result.RequeueAfter = unboundEvery
	}
	if len(unbound) > 0 {
		org.Spec.MembershipChanges = tenancy.WithExpired(org, unbound, s.clock.Now())
	}
	return result
}

func (s *members) carryOutAll(ctx context.Context, org *v1alpha1.Organization, cluster string) error {
	changes, bots := org.Spec.MembershipChanges, org.Spec.BotChanges
	now := org.DeepCopy()
	if len(bots) > 0 || slices.ContainsFunc(changes, func(c v1alpha1.MembershipChange) bool { return c.UID == "" }) {
		// A cache that is behind can show a change that was carried out, and undone since.
		var err error
		if now, err = s.orgs.current(ctx, org); err != nil {
			return err
		}
	}
	var failed error
	org.Spec.BotChanges = nil
	for _, c := range bots {
		if !slices.ContainsFunc(now.Spec.BotChanges, func(o v1alpha1.BotChange) bool { return tenancy.SameBotChange(o, c) }) ||
			tenancy.Ended(c.ValidUntil, s.clock.Now()) {
			continue
		}
		if err := s.bots.Change(ctx, cluster, c); err != nil {
			org.Spec.BotChanges, failed = append(org.Spec.BotChanges, c), err
		}
	}
	if len(changes) == 0 {
		return failed
	}
	held := s.held(ctx, cluster)
	org.Spec.MembershipChanges = nil
	for _, c := range changes {
		if o, ok := tenancy.ChangeOf(now, c.User, c.Workspace); !ok || !tenancy.SameChange(o, c) || tenancy.VoidChange(c, s.clock.Now()) {
			continue
		}
		if err := s.carryOut(ctx, cluster, c, held, leaves(org, c)); err != nil {
			org.Spec.MembershipChanges, failed = append(org.Spec.MembershipChanges, c), err
			continue
		}
		s.void(org, c, held)
	}
	return failed
}

// reduces reports whether a person may have lost what entitled them to their grants by a change.
func reduces(c v1alpha1.MembershipChange) bool {
	return c.UID != "" && !tenancy.HighestRole(tenancy.ChangedMembership(nil, c)).AtLeast(v1alpha1.RoleAdmin)
}

// leaves reports whether grants of the person of a removal or demotion could not be carried out yet.
func leaves(org *v1alpha1.Organization, c v1alpha1.MembershipChange) bool {
	return reduces(c) && (slices.ContainsFunc(org.Spec.BotChanges, func(o v1alpha1.BotChange) bool { return o.By == c.User }) ||
		slices.ContainsFunc(org.Spec.MembershipChanges, func(o v1alpha1.MembershipChange) bool { return o.By == c.User }))
}

// void drops what the person of a removal or demotion granted to others before, what could not be
// carried out yet, and what no other Membership of theirs entitles them to. held are the Memberships
// after the change.
func (s *members) void(org *v1alpha1.Organization, c v1alpha1.MembershipChange, held *held) {
	if !reduces(c) {
		return
	}
	lost := func(by, workspace string) bool {
		return by == c.User && !slices.ContainsFunc(held.known(), func(m *v1alpha1.Membership) bool {
			at := tenancy.WorkspaceUUID(m)
			if at == c.Workspace || at != "" && at != workspace || c.Cascade || m.Spec.UserRef.Name != by || !m.DeletionTimestamp.IsZero() {
				return false
			}
			now := tenancy.EffectiveAt(m, s.clock.Now())
			return now != nil && now.Spec.Role.AtLeast(v1alpha1.RoleAdmin)
		})
	}
	org.Spec.BotChanges = slices.DeleteFunc(org.Spec.BotChanges, func(o v1alpha1.BotChange) bool { return lost(o.By, o.Workspace) })
	org.Spec.MembershipChanges = slices.DeleteFunc(org.Spec.MembershipChanges, func(o v1alpha1.MembershipChange) bool {
		if o.User == c.User {
			// Nobody comes back by what was accepted before a removal from everything.
			return c.Cascade && !tenancy.Removes(o)
		}
		return !tenancy.Removes(o) && lost(o.By, o.Workspace)
	})
}

// carryOut notes in held what it changes. all says that every Membership is to be known after it: what void needs is read
// before anything is removed, because the next pass begins with the grants that are left.
func (s *members) carryOut(ctx context.Context, cluster string, c v1alpha1.MembershipChange, held *held, all bool) error {
	if all || c.Cascade {
		if err := held.readAll(); err != nil {
			return err
		}
	}
	m, err := held.of(c.User, c.Workspace)
	switch {
	case err != nil:
		return err
	case !tenancy.ChangeApplies(c, m):
		return nil
	case m == nil:
		made := tenancy.ChangedMembership(nil, c)
		held.made(made)
		return s.changes.add(ctx, cluster, made)
	case !tenancy.Removes(c):
		err := s.changes.set(ctx, cluster, m, c)
		if err == nil {
			held.changed(m, tenancy.ChangedMembership(m, c))
		}
		return err
	}
	var gone []*v1alpha1.Membership
	if c.Cascade {
		for _, along := range held.known() {
			if along.Spec.Scope == v1alpha1.ScopeWorkspace && along.Spec.UserRef.Name == c.User {
				gone = append(gone, along)
			}
		}
	}
	gone = append(gone, m)
	for _, m := range gone {
		if err := s.changes.remove(ctx, cluster, m); err != nil {
			return err
		}
	}
	held.removed(gone)
	return nil
}

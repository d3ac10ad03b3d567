package user

import (
	"context"
	"time"

	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// lifecycle has a User whose grace is over removed (O-8). There is nothing to
// freeze: nobody who is soft-deleted is let in anywhere.
type lifecycle struct {
	grace time.Duration
	clock clock.PassiveClock
	// remove removes the very User that it is given: a withdrawn request is never
	// carried out.
	remove  func(ctx context.Context, u *v1alpha1.User) error
	cascade *cascade
}

func (*lifecycle) Condition() string { return v1alpha1.ConditionActive }

func (s *lifecycle) Reconcile(ctx context.Context, u *v1alpha1.User) (controller.Result, error) {
	if !u.DeletionTimestamp.IsZero() {
		return s.cascade.reconcile(ctx, u)
	}
	held := controller.AddFinalizer(u)
	requested := u.Status.DeletionRequestedAt
	if requested == nil {
		return controller.Result{}, nil
	}
	result, over := controller.InGrace("the account", tenancy.PurgeAt(requested, s.grace), s.clock.Now())
	if over && held {
		return result, s.remove(ctx, u)
	}
	return result, nil
}

// cascade takes a User who is being removed out of everything: their own Org goes
// with them, their Memberships go, Workspaces' first, and an Org that would be left
// without an admin gets the longest-standing other member, or is soft-deleted.
type cascade struct {
	// places are the logical clusters of the Orgs in which the User has Memberships.
	places func(user string) []string
	// orgIn finds the Org whose own workspace is in a cluster.
	orgIn       func(cluster string) (tenancy.Org, bool)
	active      func(user string) bool
	memberships func(ctx context.Context, cluster string) ([]v1alpha1.Membership, error)
	promote     func(ctx context.Context, cluster string, m *v1alpha1.Membership, role v1alpha1.Role) error
	remove      func(ctx context.Context, cluster string, m *v1alpha1.Membership) error
	// deleteOrg soft-deletes an Org; removeOrg removes one, and gone tells when it is.
	deleteOrg func(ctx context.Context, org tenancy.Org) error
	removeOrg func(ctx context.Context, uuid string) (gone bool, err error)
	// purged tells of a User who is gone, with what they had; told is of whom.
	purged func(ctx context.Context, u *v1alpha1.User, counts map[string]int)
	told   controller.Once
}

func (s *cascade) reconcile(ctx context.Context, u *v1alpha1.User) (controller.Result, error) {
	result := controller.Result{Stop: true}
	if !controller.HasFinalizer(u) {
		return result, nil
	}
	gone, err := s.removeOrg(ctx, tenancy.PersonalOrgUUID(string(u.UID)))
	if err != nil || !gone {
		result.Message = "the person's own organization is being removed"
		return result, err
	}
	counts, ok := controller.Recorded(u)
	if !ok {
		result.Message = "they are being taken out of everything"
		return result, s.count(ctx, u)
	}
	for _, cluster := range s.places(u.Name) {
		if err := s.leave(ctx, u.Name, cluster); err != nil {
			return result, err
		}
	}
	s.told.Do(u.UID, func() { s.purged(ctx, u, counts) })
	controller.RemoveFinalizer(u)
	return result, nil
}

// count notes in how many places the User is.
func (s *cascade) count(ctx context.Context, u *v1alpha1.User) error {
	held := 0
	for _, cluster := range s.places(u.Name) {
		memberships, err := s.memberships(ctx, cluster)
		if err != nil {
			return err
		}
		for i := range memberships {
			if memberships[i].Spec.UserRef.Name == u.Name {
				held++
			}
		}
	}
	return controller.Record(u, map[string]int{"memberships": held})
}

func (s *cascade) leave(ctx context.Context, user, cluster string) error {
	memberships, err := s.memberships(ctx, cluster)
	if err != nil {
		return err
	}
	var inOrg *v1alpha1.Membership
	for i := range memberships {
		m := &memberships[i]
		switch {
		case m.Spec.UserRef.Name != user:
		case m.Spec.Scope == v1alpha1.ScopeOrg:
			inOrg = m
		default:
			if err := s.remove(ctx, cluster, m); err != nil {
				return err
			}
		}
	}
	if inOrg == nil {
		return nil
	}
	if inOrg.Spec.Role == v1alpha1.RoleAdmin {
		if err := s.succeed(ctx, user, cluster, memberships); err != nil {
			return err
		}
	}
	return s.remove(ctx, cluster, inOrg)
}

// succeed sees to it that the Org has an admin, or is on its way out.
func (s *cascade) succeed(ctx context.Context, user, cluster string, memberships []v1alpha1.Membership) error {
	heir, ok, needed := tenancy.Heir(memberships, user, s.active)
	switch {
	case !needed:
		return nil
	case ok && heir.Spec.Role == v1alpha1.RoleAdmin:
		return nil
	case ok:
		return s.promote(ctx, cluster, &heir, v1alpha1.RoleAdmin)
	}
	if org, ok := s.orgIn(cluster); ok && org.Organization != nil && !org.Deleted() {
		return s.deleteOrg(ctx, org)
	}
	return nil
}

package user

import (
	"context"
	"time"

	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// lifecycle deletes a soft-deleted User after the grace period (O-8). It deactivates
// nothing: the hub refuses a soft-deleted User everywhere.
type lifecycle struct {
	grace time.Duration
	hold  func() bool
	// replaying is that of the Config.
	replaying bool
	clock     clock.PassiveClock
	// users are in cluster.
	users   objects.Repository[*v1alpha1.User]
	cluster string
	cascade *cascade
}

func (*lifecycle) Condition() string { return v1alpha1.ConditionActive }

func (s *lifecycle) Reconcile(ctx context.Context, u *v1alpha1.User) (controller.Result, error) {
	switch removing := !u.DeletionTimestamp.IsZero(); {
	case removing && s.replaying:
		return controller.Result{Stop: true, Message: "the hub is in restore mode"}, nil
	case removing:
		return s.cascade.reconcile(ctx, u)
	}
	hasFinalizer := controller.AddFinalizer(u)
	requested := u.Status.DeletionRequestedAt
	if requested == nil {
		return controller.Result{}, nil
	}
	result, over := controller.InGrace("the account", tenancy.PurgeAt(requested, s.grace), s.clock.Now(), s.hold)
	if over && hasFinalizer {
		// A request for deletion that was withdrawn is never carried out.
		return result, s.users.DeleteUnchanged(ctx, s.cluster, u)
	}
	return result, nil
}

// cascade removes everything that a User has who is being deleted: the personal
// Organization, then all Memberships, those in Workspaces first. An Organization that
// would have no admin left gets the longest-standing other member as admin, or is
// soft-deleted.
type cascade struct {
	// rightsClock is the time by which Memberships end.
	rightsClock clock.PassiveClock
	views       Views
	held        Held
	// orgs are in orgsCluster.
	orgs        objects.Repository[*v1alpha1.Organization]
	orgsCluster string
	// softDelete requests the deletion of an Organization.
	softDelete func(ctx context.Context, org tenancy.Org, lastAdmin string) error
	purged     func(ctx context.Context, u *v1alpha1.User, counts map[string]int)
	// reported prevents a second call of purged after the removal of the finalizer failed.
	reported controller.Once
}

func (s *cascade) reconcile(ctx context.Context, u *v1alpha1.User) (controller.Result, error) {
	result := controller.Result{Stop: true}
	if !controller.HasFinalizer(u) {
		return result, nil
	}
	gone, err := s.deleteOrg(ctx, tenancy.PersonalOrgOf(u))
	if err != nil || !gone {
		result.Message = "the person's own organization is being removed"
		return result, err
	}
	counts, ok := controller.Recorded(u)
	if !ok {
		result.Message = "their memberships are being removed"
		return result, s.count(ctx, u)
	}
	for _, cluster := range s.held.Clusters(u.Name) {
		if err := s.leave(ctx, u.Name, cluster); err != nil {
			return result, err
		}
	}
	s.reported.Do(u.UID, func() { s.purged(ctx, u, counts) })
	controller.RemoveFinalizer(u)
	return result, nil
}

// deleteOrg deletes an Organization; gone reports that kcp has removed it.
func (s *cascade) deleteOrg(ctx context.Context, uuid string) (gone bool, err error) {
	o, ok, err := s.orgs.Find(ctx, s.orgsCluster, uuid)
	if err != nil || !ok {
		return err == nil, err
	}
	if !o.DeletionTimestamp.IsZero() {
		return false, nil
	}
	return false, s.orgs.Delete(ctx, s.orgsCluster, o)
}

// count records the number of Memberships of the User.
func (s *cascade) count(ctx context.Context, u *v1alpha1.User) error {
	held := 0
	for _, cluster := range s.held.Clusters(u.Name) {
		memberships, err := s.held.List(ctx, cluster)
		if err != nil {
			return err
		}
		for _, m := range memberships {
			if m.Spec.UserRef.Name == u.Name {
				held++
			}
		}
	}
	return controller.Record(u, map[string]int{"memberships": held})
}

func (s *cascade) leave(ctx context.Context, user, cluster string) error {
	memberships, err := s.held.List(ctx, cluster)
	if err != nil {
		return err
	}
	var inOrg *v1alpha1.Membership
	for _, m := range memberships {
		switch {
		case m.Spec.UserRef.Name != user:
		case m.Spec.Scope == v1alpha1.ScopeOrg:
			inOrg = m
		default:
			if err := s.held.Delete(ctx, cluster, m); err != nil {
				return err
			}
		}
	}
	if inOrg == nil {
		return nil
	}
	if tenancy.HandOf(inOrg).Role.AtLeast(v1alpha1.RoleAdmin) {
		if err := s.succeed(ctx, user, cluster, memberships); err != nil {
			return err
		}
	}
	return s.held.Delete(ctx, cluster, inOrg)
}

// succeed makes another member admin if the User is the last one, or soft-deletes the
// Organization if it has no other member.
func (s *cascade) succeed(ctx context.Context, user, cluster string, memberships []*v1alpha1.Membership) error {
	heir, ok, needed := tenancy.Heir(tenancy.Living(memberships, s.rightsClock.Now()), user, s.active)
	switch {
	case !needed:
		return nil
	case ok && tenancy.LastingAdmin(heir):
		return nil
	case ok:
		return s.held.Promote(ctx, cluster, heir)
	}
	if org, ok := s.views.OrgByCluster(cluster); ok && org.Organization != nil && !org.Deleted() {
		return s.softDelete(ctx, org, user)
	}
	return nil
}

// active reports whether a User is approved and not soft-deleted.
func (s *cascade) active(user string) bool {
	u, _ := s.views.ByName(user)
	return tenancy.Active(u)
}

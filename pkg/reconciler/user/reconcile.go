package user

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Config is what the steps are made of. No step gets all of it.
type Config struct {
	objects.Objects
	Clock clock.PassiveClock
	// RightsClock is the time by which Memberships end.
	RightsClock clock.PassiveClock
	// Grace is the time during which a soft-deleted User can be undeleted.
	Grace time.Duration
	// Hold, if not nil, reports that nothing is purged, though its grace period is over.
	Hold func() bool
	// Replaying is true while a restored hub ends what ended after its backup. Nobody inherits an Organization meanwhile: the
	// heir may be about to lose their place.
	Replaying bool
	// PersonalOrgs says whether every User gets a personal Organization.
	PersonalOrgs bool
	// Billing is that of a new personal Organization.
	Billing *v1alpha1.Billing
	// UsersCluster and OrgsCluster are the logical clusters of Users and of Organizations.
	UsersCluster, OrgsCluster string

	Views Views
	// SpareIn returns the UUID of the Workspace in a spare Organization; it is empty if there is none.
	SpareIn func(org string) string
	Held    Held
	// SoftDelete requests the deletion of just this version of an Organization, because its last admin is
	// purged.
	SoftDelete func(ctx context.Context, org tenancy.Org, lastAdmin string) error
	// Purged reports that a User is removed for good, with the number of Memberships that
	// were removed with them.
	Purged func(ctx context.Context, u *v1alpha1.User, counts map[string]int)
}

// Views are the caches beside those of the repositories.
type Views interface {
	// OrgsCreatedBy returns the UUIDs of the Organizations that count against the quota of
	// a User.
	OrgsCreatedBy(user string) []string
	Org(uuid string) (tenancy.Org, bool)
	OrgByCluster(cluster string) (tenancy.Org, bool)
	Workspace(org, workspace string) (tenancy.Workspace, bool)
	ByName(user string) (*v1alpha1.User, bool)
}

// Held reads and writes the Memberships that a User has, in Organizations that may be soft-deleted.
type Held struct {
	// Clusters returns the clusters of the Organizations in which a User has Memberships.
	Clusters func(user string) []string
	List     func(ctx context.Context, orgCluster string) ([]*v1alpha1.Membership, error)
	// Promote and Delete change just this version of a Membership. Promote makes an admin of it whose
	// rights do not end by time.
	Promote func(ctx context.Context, orgCluster string, m *v1alpha1.Membership) error
	Delete  func(ctx context.Context, orgCluster string, m *v1alpha1.Membership) error
}

// New returns the reconciler.
func New(c Config) controller.Func {
	create := func(ctx context.Context, o *v1alpha1.Organization) error {
		return c.Organizations.Create(ctx, c.OrgsCluster, o)
	}
	exists := func(ctx context.Context, uuid string) (bool, error) {
		return c.Organizations.Exists(ctx, c.OrgsCluster, uuid)
	}
	return controller.Reconcile(controller.Kind[*v1alpha1.User]{
		Get:     c.Users.ByKey,
		Copy:    (*v1alpha1.User).DeepCopy,
		Status:  func(u *v1alpha1.User) *v1alpha1.CommonStatus { return &u.Status.CommonStatus },
		Patch:   c.Users.Commit,
		Clock:   c.Clock,
		Leaving: func(u *v1alpha1.User) bool { return u.Status.DeletionRequestedAt != nil },
	},
		&lifecycle{
			grace: c.Grace, hold: c.Hold, replaying: c.Replaying, clock: c.Clock, users: c.Users, cluster: c.UsersCluster,
			cascade: &cascade{
				rightsClock: c.RightsClock, views: c.Views, held: c.Held, orgs: c.Organizations, orgsCluster: c.OrgsCluster,
				softDelete: c.SoftDelete, purged: c.Purged,
			},
		},
		&personalOrg{
			enabled: c.PersonalOrgs, billing: c.Billing, org: c.Views.Org, current: c.current, create: create, spareIn: c.SpareIn,
		},
		&defaultWorkspace{
			enabled: c.PersonalOrgs, views: c.Views, exists: exists, current: c.current, workspaces: c.Workspaces,
		},
		&claims{existing: c.Views.OrgsCreatedBy, read: c.read, create: create, exists: exists},
	)
}

// read reads a User from kcp. It fails with controller.ErrRetry if the User is gone.
func (c Config) read(ctx context.Context, user string) (*v1alpha1.User, error) {
	return c.Users.Read(ctx, c.UsersCluster, user)
}

// current reads just this User from kcp. It fails with controller.ErrRetry if the User
// is gone or is being deleted; the cache will follow.
type current func(ctx context.Context, u *v1alpha1.User) (*v1alpha1.User, error)

func (c Config) current(ctx context.Context, u *v1alpha1.User) (*v1alpha1.User, error) {
	read, err := c.read(ctx, u.Name)
	if err == nil && (read.UID != u.UID || !read.DeletionTimestamp.IsZero()) {
		err = fmt.Errorf("%w: the user is gone", controller.ErrRetry)
	}
	return read, err
}

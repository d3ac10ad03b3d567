package user

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Config holds what the steps need.
type Config struct {
	Clock clock.PassiveClock
	// RightsClock is the time by which Memberships end.
	RightsClock clock.PassiveClock
	// Grace is the time during which a soft-deleted User can be undeleted.
	Grace time.Duration
	// Hold, if not nil, reports that nothing is purged, though its grace period is over.
	Hold func() bool
	// PersonalOrgs says whether every User gets a personal Organization.
	PersonalOrgs bool
	// Billing is that of a new personal Organization.
	Billing *v1alpha1.Billing

	Cache         Cache
	Users         Users
	Organizations Organizations
	Memberships   Memberships
	// CreateWorkspace creates a child Workspace, which may exist already.
	CreateWorkspace func(ctx context.Context, orgCluster string, w tenancy.Workspace) error
	// Purged reports that a User is removed for good, with the number of Memberships that
	// were removed with them.
	Purged func(ctx context.Context, u *v1alpha1.User, counts map[string]int)
}

// Cache reads from the views.
type Cache struct {
	// OrgsCreatedBy returns the UUIDs of the Organizations that count against the quota of
	// a User.
	OrgsCreatedBy func(user string) []string
	Org           func(uuid string) (tenancy.Org, bool)
	// SpareIn returns the UUID of the Workspace in a spare Organization; it is empty if there is none.
	SpareIn func(org string) string
	// OrgIn returns the Organization whose workspace is in the cluster.
	OrgIn     func(cluster string) (tenancy.Org, bool)
	Workspace func(org, workspace string) (tenancy.Workspace, bool)
	// OrgClusters returns the clusters of the Organizations in which a User has
	// Memberships.
	OrgClusters func(user string) []string
	// Active reports whether a User is approved and not soft-deleted.
	Active func(user string) bool
}

// Users reads and writes Users.
type Users struct {
	// Get reads from the cache.
	Get func(controller.Key) (*v1alpha1.User, bool)
	// Read reads from kcp. It fails with controller.ErrRetry if the User is gone.
	Read  func(ctx context.Context, user string) (*v1alpha1.User, error)
	Patch func(ctx context.Context, key controller.Key, patch []byte, subresource string) error
	// Delete deletes just this version of a User.
	Delete func(ctx context.Context, u *v1alpha1.User) error
}

// Organizations writes Organizations.
type Organizations struct {
	// Create creates an Organization, which may exist already.
	Create func(ctx context.Context, o *v1alpha1.Organization) error
	// Exists asks kcp itself.
	Exists func(ctx context.Context, uuid string) (bool, error)
	// SoftDelete requests the deletion of just this version of an Organization, because its last admin is
	// purged.
	SoftDelete func(ctx context.Context, org tenancy.Org, lastAdmin string) error
	// Delete deletes an Organization; gone reports that kcp has removed it.
	Delete func(ctx context.Context, uuid string) (gone bool, err error)
}

// Memberships reads and writes the Memberships of an Organization in kcp, which may be
// soft-deleted.
type Memberships struct {
	List func(ctx context.Context, orgCluster string) ([]*v1alpha1.Membership, error)
	// Promote and Delete change just this version of a Membership. Promote makes an admin of it whose
	// rights do not end by time.
	Promote func(ctx context.Context, orgCluster string, m *v1alpha1.Membership) error
	Delete  func(ctx context.Context, orgCluster string, m *v1alpha1.Membership) error
}

// New returns the reconciler.
func New(c Config) controller.Func {
	return controller.Reconcile(controller.Kind[*v1alpha1.User]{
		Get:     c.Users.Get,
		Copy:    (*v1alpha1.User).DeepCopy,
		Status:  func(u *v1alpha1.User) *v1alpha1.CommonStatus { return &u.Status.CommonStatus },
		Patch:   c.Users.Patch,
		Clock:   c.Clock,
		Leaving: func(u *v1alpha1.User) bool { return u.Status.DeletionRequestedAt != nil },
	},
		&lifecycle{grace: c.Grace, hold: c.Hold, clock: c.Clock, remove: c.Users.Delete, cascade: &cascade{
			rightsClock: c.RightsClock,
			cache:       c.Cache, memberships: c.Memberships,
			softDeleteOrg: c.Organizations.SoftDelete, deleteOrg: c.Organizations.Delete, purged: c.Purged,
		}},
		&personalOrg{
			enabled: c.PersonalOrgs, billing: c.Billing, org: c.Cache.Org, current: c.current,
			create: c.Organizations.Create, spareIn: c.Cache.SpareIn,
		},
		&defaultWorkspace{
			enabled: c.PersonalOrgs, org: c.Cache.Org, workspace: c.Cache.Workspace,
			exists: c.Organizations.Exists, current: c.current, create: c.CreateWorkspace,
		},
		&claims{existing: c.Cache.OrgsCreatedBy, read: c.Users.Read, create: c.Organizations.Create, exists: c.Organizations.Exists},
	)
}

// current reads just this User from kcp. It fails with controller.ErrRetry if the User
// is gone or is being deleted; the cache will follow.
type current func(ctx context.Context, u *v1alpha1.User) (*v1alpha1.User, error)

func (c Config) current(ctx context.Context, u *v1alpha1.User) (*v1alpha1.User, error) {
	read, err := c.Users.Read(ctx, u.Name)
	if err == nil && (read.UID != u.UID || !read.DeletionTimestamp.IsZero()) {
		err = fmt.Errorf("%w: the user is gone", controller.ErrRetry)
	}
	return read, err
}

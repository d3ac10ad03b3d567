package organization

import (
	"context"
	"fmt"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Config is what the steps are made of. No step gets all of it.
type Config struct {
	objects.Objects
	Tree  tenancy.Tree
	Clock clock.PassiveClock
	// RightsClock is the time by which Memberships end.
	RightsClock clock.PassiveClock
	// Grace is the time during which a soft-deleted Organization can be undeleted.
	Grace time.Duration
	// Hold, if not nil, reports that nothing is purged, though its grace period is over.
	Hold func() bool
	// PersonalRole is the role of a User in their personal Organization.
	PersonalRole v1alpha1.Role
	// OrgsCluster is the logical cluster of Organizations and of their kcp Workspaces.
	OrgsCluster string

	Cache         Cache
	Organizations Organizations
	Workspaces    Workspaces
	Memberships   Memberships
	Views         Views
	// Followed reports whether kcp gives a person in a Workspace, or with an empty one in all those of the
	// Organization, nothing that their living Memberships do not give.
	Followed func(org, workspace, user string) bool
	Audit    Audit
	// GroupMaxAge is for how long groups count after the issue of the credential that says them.
	GroupMaxAge time.Duration
	// Full reports whether the store has no room for anything new.
	Full func() bool
	// RemoveEntries deletes the CatalogEntries of an Organization in kcp and returns how many
	// are left.
	RemoveEntries func(ctx context.Context, cluster string) (left int, err error)
	Clusters      Clusters
	// Kept are the APIBindings in the workspaces of Organizations.
	Kept tenancy.Bindings
	// Purged reports that an Organization is removed for good, with the number of objects
	// of each kind that were removed with it.
	Purged func(ctx context.Context, o *v1alpha1.Organization, counts map[string]int)
}

// Cache reads from the views.
type Cache struct {
	// Workspace returns the kcp Workspace of an Organization.
	Workspace func(org string) (*kcptenancyv1alpha1.Workspace, bool)
	// Initializing returns the logical cluster of an Organization if it waits for nothing
	// but the hub's initializer.
	Initializing func(org string) (cluster string, ok bool)
}

// Views are the caches beside those of the repositories.
type Views interface {
	// Workspaces returns the child Workspaces of an Organization.
	Workspaces(org string) []tenancy.Workspace
	// MembershipsIn returns the living Memberships of the Organization whose workspace is in the cluster,
	// and Expired those that have ended by time, wholly or in part.
	MembershipsIn(orgCluster string) []*v1alpha1.Membership
	Expired(orgCluster string) []*v1alpha1.Membership
	People
}

// People are the cached Users.
type People interface {
	ByName(user string) (*v1alpha1.User, bool)
	// WithGroup returns those with a group, according to their newest credentials.
	WithGroup(hash v1alpha1.GroupHash) []*v1alpha1.User
	// MembershipsOf returns the living Memberships of one, in all Organizations.
	MembershipsOf(user string) []*v1alpha1.Membership
}

// Organizations reads and writes Organizations.
type Organizations struct {
	// Get reads from the cache.
	Get func(controller.Key) (*v1alpha1.Organization, bool)
	// Read reads from kcp. It fails with controller.ErrRetry if the Organization is gone.
	Read  func(ctx context.Context, org string) (*v1alpha1.Organization, error)
	Patch func(ctx context.Context, key controller.Key, patch []byte, subresource string) error
	// Delete deletes just this version of an Organization.
	Delete func(ctx context.Context, o *v1alpha1.Organization) error
}

// Workspaces reads and writes Workspaces in kcp: those of Organizations and, where a
// cluster is named, the child Workspaces in the Organization with that cluster.
type Workspaces struct {
	Create func(ctx context.Context, ws *kcptenancyv1alpha1.Workspace) error
	// Take makes the Workspace of an Organization of a spare, or throws a spare away that is reserved for
	// somebody else.
	Take func(ctx context.Context, spare *kcptenancyv1alpha1.Workspace, rightful bool) error
	// Own reads the Workspace of an Organization.
	Own  func(ctx context.Context, org string) (ws *kcptenancyv1alpha1.Workspace, ok bool, err error)
	List func(ctx context.Context, cluster string) ([]*kcptenancyv1alpha1.Workspace, error)
	// Delete deletes any version of a Workspace and lets kcp delete its content.
	Delete func(ctx context.Context, cluster string, ws *kcptenancyv1alpha1.Workspace) error
}

// Memberships reads and writes the Memberships of an Organization in kcp.
type Memberships struct {
	List   func(ctx context.Context, cluster string) ([]*v1alpha1.Membership, error)
	Create func(ctx context.Context, cluster string, m *v1alpha1.Membership) error
	// Delete deletes just this version of a Membership; otherwise it fails with controller.ErrRetry.
	Delete func(ctx context.Context, cluster string, m *v1alpha1.Membership) error
}

// Clusters activates and deactivates logical clusters.
type Clusters struct {
	Deactivate, Activate func(ctx context.Context, cluster string) error
	// Deactivated reads from the cache.
	Deactivated func(cluster string) bool
	// Initialize removes the hub's initializer from the logical cluster of an Organization.
	Initialize func(ctx context.Context, org, cluster string) error
}

// New returns the reconciler.
func New(c Config) controller.Func {
	cluster := boundCluster(c.Cache.Workspace, c.Cache.Initializing)
	orgs := organizations{c.Objects.Organizations, c.OrgsCluster}
	return controller.Reconcile(controller.Kind[*v1alpha1.Organization]{
		Get:    c.Organizations.Get,
		Copy:   (*v1alpha1.Organization).DeepCopy,
		Status: func(o *v1alpha1.Organization) *v1alpha1.CommonStatus { return &o.Status.CommonStatus },
		Patch:  c.Organizations.Patch,
		Clock:  c.Clock,
		// That a person has too many Memberships does not concern the others.
		Informative: []string{v1alpha1.ConditionGroupsApplied},
		Leaving:     func(o *v1alpha1.Organization) bool { return o.Status.DeletionRequestedAt != nil },
	},
		&lifecycle{
			grace: c.Grace, hold: c.Hold, clock: c.Clock, workspace: c.Cache.Workspace, children: c.Views.Workspaces,
			clusters: c.Clusters, remove: c.Organizations.Delete,
			cascade: &cascade{
				orgsCluster: c.OrgsCluster, workspaces: c.Workspaces, memberships: c.Memberships,
				removeEntries: c.RemoveEntries, activate: c.Clusters.Activate, purged: c.Purged,
			},
		},
		&workspace{
			tree: c.Tree, get: c.Cache.Workspace, cluster: cluster, current: c.current, create: c.Workspaces.Create,
			user: c.Views.ByName, take: c.Workspaces.Take,
		},
		&binding{cluster: cluster, bindings: c.Kept},
		&firstAdmin{
			cluster: cluster, views: c.Views, personalRole: c.PersonalRole,
			list: c.Memberships.List, current: c.current, create: c.Memberships.Create,
		},
		&initialized{workspace: c.Cache.Workspace, initializing: c.Cache.Initializing, initialize: c.Clusters.Initialize},
		&claims{cluster: cluster, children: c.Views.Workspaces, orgs: orgs, workspaces: c.Objects.Workspaces},
		invitations(cluster, orgs, c.Invitations),
		requests(cluster, orgs, c.Requests),
		&members{
			cluster: cluster, orgs: orgs, memberships: c.Objects.Memberships, changes: audited{c.Objects.Memberships, c.RightsClock, c.Audit},
			bots: c.Bots, clock: c.RightsClock, expired: c.Views.Expired, followed: c.Followed,
		},
		&groups{cluster: cluster, views: c.Views, maxAge: c.GroupMaxAge, full: c.Full, clock: c.RightsClock},
	)
}

// organizations are the Organizations, all in one logical cluster.
type organizations struct {
	objects.Repository[*v1alpha1.Organization]
	cluster string
}

// now reads an Organization from kcp. It fails with controller.ErrRetry if the Organization is gone.
func (o organizations) now(ctx context.Context, org string) (*v1alpha1.Organization, error) {
	return o.Read(ctx, o.cluster, org)
}

// current reads just this Organization from kcp. It fails with controller.ErrRetry if
// the Organization is gone or is being deleted; the cache will follow.
func (o organizations) current(ctx context.Context, org *v1alpha1.Organization) (*v1alpha1.Organization, error) {
	now, err := o.now(ctx, org.Name)
	if err == nil && (now.UID != org.UID || !now.DeletionTimestamp.IsZero()) {
		err = fmt.Errorf("%w: the organization is gone", controller.ErrRetry)
	}
	return now, err
}

// current reads just this Organization from kcp.
type current func(ctx context.Context, org *v1alpha1.Organization) (*v1alpha1.Organization, error)

func (c Config) current(ctx context.Context, org *v1alpha1.Organization) (*v1alpha1.Organization, error) {
	read, err := c.Organizations.Read(ctx, org.Name)
	if err == nil && (read.UID != org.UID || !read.DeletionTimestamp.IsZero()) {
		err = fmt.Errorf("%w: the organization is gone", controller.ErrRetry)
	}
	return read, err
}

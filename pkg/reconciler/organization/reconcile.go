package organization

import (
	"context"
	"fmt"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Config holds what the steps need.
type Config struct {
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
	// ChangeBot carries out a change of spec.botChanges. A Bot that it does not apply to any more
	// is no error.
	ChangeBot func(ctx context.Context, cluster string, c v1alpha1.BotChange) error
	// ChangeInvitation carries out a change of spec.invitationChanges.
	ChangeInvitation func(ctx context.Context, cluster string, c v1alpha1.InvitationChange) error
	// ChangeRequest carries out a change of spec.requestChanges.
	ChangeRequest func(ctx context.Context, cluster string, c v1alpha1.RequestChange) error
	Groups        Groups
	// RemoveEntries deletes the CatalogEntries of an Organization in kcp and returns how many
	// are left.
	RemoveEntries func(ctx context.Context, cluster string) (left int, err error)
	Clusters      Clusters
	// Bindings are the APIBindings in the workspaces of Organizations.
	Bindings tenancy.Bindings
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
	// Memberships returns those of the Organization whose workspace is in the cluster.
	Memberships func(cluster string) []*v1alpha1.Membership
	// Expired returns those that have ended by time.
	Expired func(cluster string) []*v1alpha1.Membership
	// Followed reports whether kcp gives a person in the Organization's Workspaces nothing that their
	// living Memberships do not give.
	Followed func(org, user string) bool
	// Children returns the child Workspaces of an Organization.
	Children func(org string) []tenancy.Workspace
	User     func(name string) (*v1alpha1.User, bool)
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
	Own func(ctx context.Context, org string) (ws *kcptenancyv1alpha1.Workspace, ok bool, err error)
	// CreateChild creates a child Workspace, which may exist already.
	CreateChild func(ctx context.Context, cluster string, w tenancy.Workspace) error
	ChildExists func(ctx context.Context, cluster, workspace string) (bool, error)
	List        func(ctx context.Context, cluster string) ([]*kcptenancyv1alpha1.Workspace, error)
	// Delete deletes any version of a Workspace and lets kcp delete its content.
	Delete func(ctx context.Context, cluster string, ws *kcptenancyv1alpha1.Workspace) error
}

// Memberships reads and writes the Memberships of an Organization in kcp.
type Memberships struct {
	List   func(ctx context.Context, cluster string) ([]*v1alpha1.Membership, error)
	Create func(ctx context.Context, cluster string, m *v1alpha1.Membership) error
	// Delete, Remove and Set change just this version of a Membership; otherwise they fail
	// with controller.ErrRetry. Add, Remove and Set are for spec.membershipChanges and are
	// audited; a cascade audits the number of those that it deletes.
	Delete func(ctx context.Context, cluster string, m *v1alpha1.Membership) error
	Add    func(ctx context.Context, cluster string, m *v1alpha1.Membership) error
	Remove func(ctx context.Context, cluster string, m *v1alpha1.Membership) error
	Set    func(ctx context.Context, cluster string, m *v1alpha1.Membership, c v1alpha1.MembershipChange) error
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
			grace: c.Grace, hold: c.Hold, clock: c.Clock, workspace: c.Cache.Workspace, children: c.Cache.Children,
			clusters: c.Clusters, remove: c.Organizations.Delete,
			cascade: &cascade{
				orgsCluster: c.OrgsCluster, workspaces: c.Workspaces, memberships: c.Memberships,
				removeEntries: c.RemoveEntries, activate: c.Clusters.Activate, purged: c.Purged,
			},
		},
		&workspace{
			tree: c.Tree, get: c.Cache.Workspace, cluster: cluster, current: c.current, create: c.Workspaces.Create,
			user: c.Cache.User, take: c.Workspaces.Take,
		},
		&binding{cluster: cluster, bindings: c.Bindings},
		&firstAdmin{
			cluster: cluster, user: c.Cache.User, personalRole: c.PersonalRole, cached: c.Cache.Memberships,
			list: c.Memberships.List, current: c.current, create: c.Memberships.Create,
		},
		&initialized{workspace: c.Cache.Workspace, initializing: c.Cache.Initializing, initialize: c.Clusters.Initialize},
		&claims{cluster: cluster, children: c.Cache.Children, read: c.Organizations.Read, create: c.Workspaces.CreateChild, exists: c.Workspaces.ChildExists},
		invitations(cluster, c.current, c.ChangeInvitation),
		requests(cluster, c.current, c.ChangeRequest),
		&members{
			cluster: cluster, current: c.current, list: c.Memberships.List, clock: c.RightsClock, expired: c.Cache.Expired, followed: c.Cache.Followed,
			create: c.Memberships.Add, remove: c.Memberships.Remove, set: c.Memberships.Set, bot: c.ChangeBot,
		},
		&groups{
			Groups: c.Groups, cluster: cluster, memberships: c.Cache.Memberships, children: c.Cache.Children, user: c.Cache.User,
			clock: c.RightsClock,
		},
	)
}

// current reads just this Organization from kcp. It fails with controller.ErrRetry if
// the Organization is gone or is being deleted; the cache will follow.
type current func(ctx context.Context, org *v1alpha1.Organization) (*v1alpha1.Organization, error)

func (c Config) current(ctx context.Context, org *v1alpha1.Organization) (*v1alpha1.Organization, error) {
	read, err := c.Organizations.Read(ctx, org.Name)
	if err == nil && (read.UID != org.UID || !read.DeletionTimestamp.IsZero()) {
		err = fmt.Errorf("%w: the organization is gone", controller.ErrRetry)
	}
	return read, err
}

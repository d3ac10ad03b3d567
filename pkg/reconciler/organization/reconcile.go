package organization

import (
	"context"
	"fmt"
	"time"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
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

	Views Views
	// Followed reports whether kcp gives a person in a Workspace, or with an empty one in all those of the
	// Organization, nothing that their living Memberships do not give.
	Followed func(org, workspace, user string) bool
	Audit    Audit
	// GroupMaxAge is for how long groups count after the issue of the credential that says them.
	GroupMaxAge time.Duration
	// Places counts the Memberships of a User for an Organization that lets them in by a group.
	Places func(o *v1alpha1.Organization, user string) tenancy.Places
	// Full reports whether the store has no room for anything new.
	Full        func() bool
	Clusters    Clusters
	Initializer Initializer
	// Kept are the APIBindings in the workspaces of Organizations.
	Kept tenancy.Bindings
	// Purged reports that an Organization is removed for good, with the number of objects
	// of each kind that were removed with it.
	Purged func(ctx context.Context, o *v1alpha1.Organization, counts map[string]int)
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
}

// Clusters activates and deactivates logical clusters. Deactivated reads from the cache.
type Clusters interface {
	Deactivate(ctx context.Context, cluster string) error
	Activate(ctx context.Context, cluster string) error
	ActivateForDeletion(ctx context.Context, cluster string) error
	Deactivated(cluster string) bool
}

// Initializer finishes the logical clusters of new Organizations.
type Initializer interface {
	// InitializingCluster returns the logical cluster of an Organization if it waits for nothing
	// but the hub's initializer.
	InitializingCluster(org string) (cluster string, ok bool)
	// Initialize removes the hub's initializer.
	Initialize(ctx context.Context, org, cluster string) error
}

// New returns the reconciler.
func New(c Config) controller.Func {
	orgs := organizations{c.Organizations, c.OrgsCluster}
	own := workspaces{c.Workspaces, c.OrgsCluster}
	cluster := own.bound(c.Initializer)
	return controller.Reconcile(controller.Kind[*v1alpha1.Organization]{
		Get:    c.Organizations.ByKey,
		Copy:   (*v1alpha1.Organization).DeepCopy,
		Status: func(o *v1alpha1.Organization) *v1alpha1.CommonStatus { return &o.Status.CommonStatus },
		Patch:  c.Organizations.Commit,
		Clock:  c.Clock,
		// That a person has too many Memberships does not concern the others.
		Informative: []string{v1alpha1.ConditionGroupsApplied},
		// What cannot be made, for example in a full store, holds up no removal.
		Independent: []string{
			v1alpha1.ConditionClaimsHandled, v1alpha1.ConditionInvitationsChanged, v1alpha1.ConditionRequestsChanged, v1alpha1.ConditionMembersChanged,
		},
		Leaving: func(o *v1alpha1.Organization) bool { return o.Status.DeletionRequestedAt != nil },
	},
		&lifecycle{
			grace: c.Grace, hold: c.Hold, clock: c.Clock, orgs: orgs, workspaces: own, children: c.Views.Workspaces, clusters: c.Clusters,
			cascade: &cascade{workspaces: own, memberships: c.Memberships, entries: c.Entries, clusters: c.Clusters, purged: c.Purged},
		},
		&workspace{tree: c.Tree, workspaces: own, cluster: cluster, orgs: orgs, user: c.Views.ByName},
		&binding{cluster: cluster, bindings: c.Kept},
		&firstAdmin{cluster: cluster, views: c.Views, personalRole: c.PersonalRole, memberships: c.Memberships, orgs: orgs},
		&initialized{workspaces: own, initializer: c.Initializer},
		&claims{cluster: cluster, children: c.Views.Workspaces, orgs: orgs, workspaces: c.Workspaces},
		invitations(cluster, orgs, c.Invitations),
		requests(cluster, orgs, c.Requests),
		&members{
			cluster: cluster, orgs: orgs, memberships: c.Memberships, changes: audited{c.Memberships, c.RightsClock, c.Audit},
			bots: c.Bots, clock: c.RightsClock, expired: c.Views.Expired, followed: c.Followed,
		},
		&groups{cluster: cluster, views: c.Views, maxAge: c.GroupMaxAge, places: c.Places, full: c.Full, clock: c.RightsClock},
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

// workspaces are kcp's Workspaces of Organizations, in one logical cluster, and those in Organizations.
type workspaces struct {
	objects.Workspaces
	cluster string
}

// of returns the Workspace of an Organization from the cache.
func (w workspaces) of(org string) (*kcptenancyv1alpha1.Workspace, bool) {
	return w.Get(w.cluster, org)
}

// clusterFunc returns the logical cluster of an Organization after kcp has bound its
// APIs: the cluster is Ready, or waits for nothing but the hub's initializer.
type clusterFunc func(org string) (cluster string, ok bool)

// bound returns the clusterFunc that asks the kcp Workspace and, until that is
// Ready, the logical cluster itself: kcp updates the Workspace only now and then.
func (w workspaces) bound(i Initializer) clusterFunc {
	return func(org string) (string, bool) {
		if ws, ok := w.of(org); ok && ws.Status.Phase == kcpcorev1alpha1.LogicalClusterPhaseReady {
			return ws.Spec.Cluster, true
		}
		return i.InitializingCluster(org)
	}
}

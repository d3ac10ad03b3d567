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

// Config is what the reconciler reads from memory and writes to kcp.
type Config struct {
	Tree  tenancy.Tree
	Clock clock.PassiveClock
	Get   func(controller.Key) (*v1alpha1.Organization, bool)
	// Workspace reads an Org's own kcp Workspace.
	Workspace func(org string) (*kcptenancyv1alpha1.Workspace, bool)
	// Waiting is the logical cluster of an Org that waits for nothing but the hub's
	// initializer.
	Waiting func(org string) (cluster string, ok bool)
	// Memberships are those in the Org whose workspace is in the cluster.
	Memberships func(cluster string) []*v1alpha1.Membership

	// Children are the Workspaces in an Org.
	Children func(org string) []tenancy.Workspace
	User     func(name string) (*v1alpha1.User, bool)
	// PersonalRole is what people are in their personal Org.
	PersonalRole v1alpha1.Role
	// Grace is how long what was deleted can be undeleted.
	Grace time.Duration
	// Orgs is the logical cluster of the Orgs' own workspaces.
	Orgs string

	Patch            func(ctx context.Context, key controller.Key, patch []byte, subresource string) error
	CreateWorkspace  func(ctx context.Context, ws *kcptenancyv1alpha1.Workspace) error
	CreateMembership func(ctx context.Context, cluster string, m *v1alpha1.Membership) error
	// CreateChild makes a Workspace in the Org whose own is in the cluster, which may be
	// there already.
	CreateChild func(ctx context.Context, cluster string, w tenancy.Workspace) error
	// Read, ChildExists and ListMemberships ask kcp itself; Read fails with
	// controller.ErrRetry where the Org is gone.
	Read            func(ctx context.Context, org string) (*v1alpha1.Organization, error)
	ChildExists     func(ctx context.Context, cluster, workspace string) (bool, error)
	ListMemberships func(ctx context.Context, cluster string) ([]v1alpha1.Membership, error)
	// RemoveMembership and DemoteMembership change the very Membership that they are
	// given.
	RemoveMembership func(ctx context.Context, cluster string, m *v1alpha1.Membership) error
	DemoteMembership func(ctx context.Context, cluster string, m *v1alpha1.Membership, role v1alpha1.Role) error
	// Freeze and Thaw close and open a logical cluster; Release opens one that kcp is
	// to clean up.
	Freeze, Thaw, Release func(ctx context.Context, cluster string) error
	// Shut tells whether a logical cluster is closed.
	Shut func(cluster string) bool
	// Remove removes the very Organization that it is given.
	Remove func(ctx context.Context, o *v1alpha1.Organization) error
	// OwnWorkspace and ListWorkspaces ask kcp itself.
	OwnWorkspace    func(ctx context.Context, org string) (*kcptenancyv1alpha1.Workspace, bool, error)
	ListWorkspaces  func(ctx context.Context, cluster string) ([]kcptenancyv1alpha1.Workspace, error)
	RemoveWorkspace func(ctx context.Context, cluster string, ws *kcptenancyv1alpha1.Workspace) error
	// Purged tells of an Org that is gone, with what was in it.
	Purged func(ctx context.Context, o *v1alpha1.Organization, counts map[string]int)
	// Initialized takes the hub's initializer off the logical cluster.
	Initialized func(ctx context.Context, org, cluster string) error
	// Bindings are those of the Orgs' own workspaces.
	Bindings tenancy.Bindings
}

// New returns the reconciler.
func New(c Config) controller.Func {
	place := where(c.Workspace, c.Waiting)
	return controller.Reconcile(controller.Kind[*v1alpha1.Organization]{
		Get:     c.Get,
		Copy:    (*v1alpha1.Organization).DeepCopy,
		Status:  func(o *v1alpha1.Organization) *v1alpha1.CommonStatus { return &o.Status.CommonStatus },
		Patch:   c.Patch,
		Clock:   c.Clock,
		Leaving: func(o *v1alpha1.Organization) bool { return o.Status.DeletionRequestedAt != nil },
	},
		&lifecycle{
			grace: c.Grace, clock: c.Clock, workspace: c.Workspace, children: c.Children,
			freeze: c.Freeze, thaw: c.Thaw, shut: c.Shut, remove: c.Remove,
			cascade: &cascade{
				orgs: c.Orgs, own: c.OwnWorkspace, open: c.Release,
				workspaces: c.ListWorkspaces, memberships: c.ListMemberships,
				removeWorkspace: c.RemoveWorkspace, removeMembership: c.RemoveMembership, purged: c.Purged,
			},
		},
		&workspace{tree: c.Tree, get: c.Workspace, place: place, now: c.now, create: c.CreateWorkspace},
		&binding{place: place, bindings: c.Bindings},
		&firstAdmin{
			place: place, user: c.User, personal: c.PersonalRole, memberships: c.Memberships,
			list: c.ListMemberships, now: c.now, create: c.CreateMembership,
		},
		&initialized{workspace: c.Workspace, waiting: c.Waiting, remove: c.Initialized},
		&claims{place: place, existing: c.existing, read: c.Read, create: c.CreateChild, exists: c.ChildExists},
		&members{place: place, list: c.ListMemberships, remove: c.RemoveMembership, demote: c.DemoteMembership},
	)
}

// now is what kcp has of the very Organization that it is given, or
// controller.ErrRetry where that is gone, or on its way: memory will say so, too.
type now func(ctx context.Context, org *v1alpha1.Organization) (*v1alpha1.Organization, error)

func (c Config) now(ctx context.Context, org *v1alpha1.Organization) (*v1alpha1.Organization, error) {
	held, err := c.Read(ctx, org.Name)
	if err == nil && (held.UID != org.UID || !held.DeletionTimestamp.IsZero()) {
		err = fmt.Errorf("%w: the organization is gone", controller.ErrRetry)
	}
	return held, err
}

func (c Config) existing(org string) []string {
	var uuids []string
	for _, ws := range c.Children(org) {
		uuids = append(uuids, ws.UUID)
	}
	return uuids
}

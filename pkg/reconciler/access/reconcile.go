package access

import (
	"context"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Cache reads from the views.
type Cache struct {
	// Workspace returns the child Workspace of a key and its Organization. ok is false for
	// a Workspace whose RBAC stays as it is.
	Workspace func(controller.Key) (org tenancy.Org, ws tenancy.Workspace, ok bool)
	// Memberships returns the Memberships that grant rights in a Workspace of the
	// Organization. Membership finds one in the Organization by name.
	Memberships func(orgCluster, workspace string) []*v1alpha1.Membership
	Membership  func(orgCluster, name string) (*v1alpha1.Membership, bool)
	User        func(name string) (*v1alpha1.User, bool)
	// Bindings returns the hub's ClusterRoleBindings in a logical cluster.
	Bindings func(cluster string) []*rbacv1.ClusterRoleBinding
	// NamespacedBindings returns the hub's RoleBindings in a logical cluster.
	NamespacedBindings func(cluster string) []*rbacv1.RoleBinding
	// Roles returns the roles of a logical cluster that Memberships may name.
	Roles func(cluster string) tenancy.RoleSource
	// ClusterRoles returns all ClusterRoles in a logical cluster, also those of tenants.
	ClusterRoles func(cluster string) []*rbacv1.ClusterRole
}

// Writes writes the RBAC of people to a logical cluster.
type Writes struct {
	WriteRole     func(ctx context.Context, cluster string, r *rbacv1.ClusterRole) error
	RemoveRole    func(ctx context.Context, cluster string, r *rbacv1.ClusterRole) error
	WriteBinding  func(ctx context.Context, cluster string, b *rbacv1.ClusterRoleBinding) error
	RemoveBinding func(ctx context.Context, cluster string, b *rbacv1.ClusterRoleBinding) error

	WriteNamespacedBinding  func(ctx context.Context, cluster string, b *rbacv1.RoleBinding) error
	RemoveNamespacedBinding func(ctx context.Context, cluster string, b *rbacv1.RoleBinding) error
}

// Reconciler keeps the bindings in child Workspaces.
type Reconciler struct {
	cache  Cache
	writes Writes
}

// New returns the reconciler.
func New(c Cache, w Writes) *Reconciler { return &Reconciler{c, w} }

// Reconcile establishes the bindings in one Workspace.
func (r *Reconciler) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	cluster, c := r.changes(key, "")
	if cluster == "" {
		return controller.Result{}, nil
	}
	changes, within := errgroup.WithContext(ctx)
	changes.SetLimit(16)
	// Rights that ended are removed first.
	each(within, changes, cluster, c.RemoveBindings, r.writes.RemoveBinding)
	each(within, changes, cluster, c.RemoveNamespacedBindings, r.writes.RemoveNamespacedBinding)
	each(within, changes, cluster, c.RemoveRoles, r.writes.RemoveRole)
	each(within, changes, cluster, c.WriteRoles, r.writes.WriteRole)
	each(within, changes, cluster, c.WriteBindings, r.writes.WriteBinding)
	each(within, changes, cluster, c.WriteNamespacedBindings, r.writes.WriteNamespacedBinding)
	return controller.Result{}, changes.Wait()
}

func each[T any](ctx context.Context, g *errgroup.Group, cluster string, objects []T, f func(context.Context, string, T) error) {
	for _, o := range objects {
		g.Go(func() error { return f(ctx, cluster, o) })
	}
}

// Missing is the number of objects in a Workspace that are not as desired.
func (r *Reconciler) Missing(key controller.Key) int {
	_, c := r.changes(key, "")
	return c.Count()
}

// MissingOf is the number of objects of one User in a Workspace that are not as desired.
func (r *Reconciler) MissingOf(key controller.Key, user string) int {
	_, c := r.changes(key, user)
	return c.OnlyOf(user).Count()
}

// changes compares the current with the desired objects. If only is not empty, it considers the
// Memberships of that User only, and the result for other Users is meaningless.
func (r *Reconciler) changes(key controller.Key, only string) (cluster string, c tenancy.AccessChanges) {
	org, ws, ok := r.cache.Workspace(key)
	if !ok || !ws.KCPReady {
		return "", c
	}
	roles := r.cache.ClusterRoles(ws.ClusterID)
	var memberships []*v1alpha1.Membership
	// A soft-deleted Organization or Workspace grants nothing.
	switch {
	case org.Deleted() || ws.Deleted():
	case only == "":
		memberships = r.cache.Memberships(key.Cluster, ws.UUID)
	default:
		for _, workspace := range []string{"", ws.UUID} {
			if m, ok := r.cache.Membership(key.Cluster, tenancy.MembershipName(only, workspace)); ok {
				memberships = append(memberships, m)
			}
		}
	}
	grants := tenancy.Grants(org, ws.UUID, memberships, r.cache.User)
	access := tenancy.AccessOf(ws.UUID, grants, r.cache.Roles(ws.ClusterID).Resolve)
	return ws.ClusterID, access.Changes(roles, r.cache.Bindings(ws.ClusterID), r.cache.NamespacedBindings(ws.ClusterID))
}

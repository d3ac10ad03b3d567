package objects

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// RBAC is the one writer of derived roles and bindings: those of people, of Bots, of CatalogEntries
// and the roles of Workspaces.
type RBAC struct {
	Roles    Repository[*rbacv1.ClusterRole]
	Bindings Repository[*rbacv1.ClusterRoleBinding]
	// in returns the RoleBindings, those of a namespace for writes.
	in func(namespace string) Repository[*rbacv1.RoleBinding]
}

func newRBAC(clients *kcp.Clients, cached Caches) RBAC {
	return RBAC{
		Roles:    Of("clusterroles", clients.ClusterRoles, cached.ClusterRoles),
		Bindings: Of("clusterrolebindings", clients.ClusterRoleBindings, cached.ClusterRoleBindings),
		in: func(namespace string) Repository[*rbacv1.RoleBinding] {
			return Of("rolebindings", func(cluster string) *kcp.Client[*rbacv1.RoleBinding] { return clients.RoleBindings(cluster, namespace) }, cached.RoleBindings)
		},
	}
}

// Held returns the roles and bindings in a logical cluster from the cache. It has all ClusterRoles, also
// those of tenants, and the bindings of the hub.
func (r RBAC) Held(cluster string) []tenancy.RBAC {
	return slices.Concat(tenancy.AllRBAC(r.Roles.InCluster(cluster)), tenancy.AllRBAC(r.Bindings.InCluster(cluster)), tenancy.AllRBAC(r.in("").InCluster(cluster)))
}

// writes is the number of objects that are written at once.
const writes = 16

// Keep turns the held objects in a logical cluster into the wanted ones. In a pass that somebody
// requested it writes all of them.
func (r RBAC) Keep(ctx context.Context, cluster string, held, wanted []tenancy.RBAC) error {
	return r.Apply(ctx, cluster, tenancy.CompareRBAC(held, wanted, controller.Forced(ctx)))
}

// Apply carries changes out: rights that ended are removed before others are given. A write that kcp
// refuses holds up no other one.
func (r RBAC) Apply(ctx context.Context, cluster string, c tenancy.RBACChanges) error {
	if err := all(c.Remove, func(o tenancy.RBAC) error {
		switch o := o.(type) {
		case *rbacv1.ClusterRole:
			return r.Roles.Delete(ctx, cluster, o)
		case *rbacv1.ClusterRoleBinding:
			return r.Bindings.Delete(ctx, cluster, o)
		case *rbacv1.RoleBinding:
			return r.in(o.Namespace).Delete(ctx, cluster, o)
		}
		return nil
	}); err != nil {
		return err
	}
	return all(c.Write, func(o tenancy.RBAC) error {
		switch o := o.(type) {
		case *rbacv1.ClusterRole:
			return r.Roles.Replace(ctx, cluster, o)
		case *rbacv1.ClusterRoleBinding:
			return r.Bindings.Replace(ctx, cluster, o)
		case *rbacv1.RoleBinding:
			return r.in(o.Namespace).Replace(ctx, cluster, o)
		}
		return nil
	})
}

func all(objects []tenancy.RBAC, do func(tenancy.RBAC) error) error {
	var group errgroup.Group
	group.SetLimit(writes)
	for _, o := range objects {
		group.Go(func() error { return do(o) })
	}
	return group.Wait()
}

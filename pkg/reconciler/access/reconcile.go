// Package access derives what people may do in a child Workspace from the
// Memberships of its Org (O-15): one binding per person and role, nothing shared
// but the binding of the sudo group.
package access

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Config is what the reconciler reads from memory and writes to kcp.
type Config struct {
	// Workspace and Org find what a key, the cluster of the Org and the name of
	// the Workspace, stands for.
	Workspace func(controller.Key) (tenancy.Org, tenancy.Workspace, bool)
	// Memberships are those that say who has which right in a Workspace of the Org;
	// Membership finds one of the Org's by name.
	Memberships func(orgCluster, workspace string) []*v1alpha1.Membership
	Membership  func(orgCluster, name string) (*v1alpha1.Membership, bool)
	User        func(name string) (*v1alpha1.User, bool)
	// Bindings are the hub's own in a logical cluster.
	Bindings func(cluster string) []*rbacv1.ClusterRoleBinding
	// ClusterRoles are all in a logical cluster, tenants' among them.
	ClusterRoles func(cluster string) []*rbacv1.ClusterRole

	WriteRole     func(ctx context.Context, cluster string, r *rbacv1.ClusterRole) error
	RemoveRole    func(ctx context.Context, cluster string, r *rbacv1.ClusterRole) error
	WriteBinding  func(ctx context.Context, cluster string, b *rbacv1.ClusterRoleBinding) error
	RemoveBinding func(ctx context.Context, cluster string, b *rbacv1.ClusterRoleBinding) error
}

// Reconciler keeps the bindings.
type Reconciler struct{ config Config }

// New returns the reconciler.
func New(c Config) *Reconciler { return &Reconciler{config: c} }

// Reconcile makes the bindings of one Workspace as they should be.
func (r *Reconciler) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	cluster, c := r.changes(key, "")
	if cluster == "" {
		return controller.Result{}, nil
	}
	changes, within := errgroup.WithContext(ctx)
	changes.SetLimit(16)
	// Rights that ended go first.
	each(within, changes, cluster, c.RemoveBindings, r.config.RemoveBinding)
	each(within, changes, cluster, c.RemoveRoles, r.config.RemoveRole)
	each(within, changes, cluster, c.WriteRoles, r.config.WriteRole)
	each(within, changes, cluster, c.WriteBindings, r.config.WriteBinding)
	return controller.Result{}, changes.Wait()
}

func each[T any](ctx context.Context, g *errgroup.Group, cluster string, objects []T, f func(context.Context, string, T) error) {
	for _, o := range objects {
		g.Go(func() error { return f(ctx, cluster, o) })
	}
}

// Missing counts what is not as it should be in a Workspace.
func (r *Reconciler) Missing(key controller.Key) int {
	_, c := r.changes(key, "")
	return c.Count()
}

// MissingOf counts what of one person is not as it should be in a Workspace.
func (r *Reconciler) MissingOf(key controller.Key, user string) int {
	_, c := r.changes(key, user)
	return c.OnlyOf(user).Count()
}

// changes compares what is with what should be. Of the Memberships only those of
// one person count where only names them; what is found of others then is wrong.
func (r *Reconciler) changes(key controller.Key, only string) (cluster string, c tenancy.AccessChanges) {
	org, ws, ok := r.config.Workspace(key)
	if !ok || !ws.KCPReady {
		return "", c
	}
	roles := r.config.ClusterRoles(ws.ClusterID)
	var memberships []*v1alpha1.Membership
	// What is deleted gives nobody anything.
	switch {
	case org.Deleted() || ws.Deleted():
	case only == "":
		memberships = r.config.Memberships(key.Cluster, ws.UUID)
	default:
		for _, workspace := range []string{"", ws.UUID} {
			if m, ok := r.config.Membership(key.Cluster, tenancy.MembershipName(only, workspace)); ok {
				memberships = append(memberships, m)
			}
		}
	}
	grants := tenancy.Grants(org, ws.UUID, memberships, r.config.User)
	access := tenancy.AccessOf(ws.UUID, grants, func(name string) bool {
		// kcp goes by its copy of one that is being deleted, and shows another.
		return slices.ContainsFunc(roles, func(r *rbacv1.ClusterRole) bool { return r.Name == name && r.DeletionTimestamp.IsZero() })
	})
	return ws.ClusterID, access.Changes(roles, r.config.Bindings(ws.ClusterID))
}

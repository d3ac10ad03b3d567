// Package access derives the ClusterRoleBindings of a child Workspace from the
// Memberships of its Org (O-15): one per person and role, nothing shared.
package access

import (
	"context"

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
	Workspace   func(controller.Key) (tenancy.Org, tenancy.Workspace, bool)
	Memberships func(orgCluster string) []*v1alpha1.Membership
	User        func(name string) (*v1alpha1.User, bool)
	// Bindings are the hub's own in a logical cluster.
	Bindings func(cluster string) []*rbacv1.ClusterRoleBinding

	Write  func(ctx context.Context, cluster string, b *rbacv1.ClusterRoleBinding) error
	Delete func(ctx context.Context, cluster string, b *rbacv1.ClusterRoleBinding) error
}

// Reconciler keeps the bindings.
type Reconciler struct{ config Config }

// New returns the reconciler.
func New(c Config) *Reconciler { return &Reconciler{config: c} }

// Reconcile makes the bindings of one Workspace as they should be.
func (r *Reconciler) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	cluster, write, remove := r.changes(key)
	if cluster == "" {
		return controller.Result{}, nil
	}
	changes, ctx := errgroup.WithContext(ctx)
	changes.SetLimit(16)
	// Rights that ended go first.
	for _, b := range remove {
		changes.Go(func() error { return r.config.Delete(ctx, cluster, b) })
	}
	for _, b := range write {
		changes.Go(func() error { return r.config.Write(ctx, cluster, b) })
	}
	return controller.Result{}, changes.Wait()
}

// Missing counts the bindings that are not as they should be.
func (r *Reconciler) Missing(key controller.Key) int {
	_, write, remove := r.changes(key)
	return len(write) + len(remove)
}

func (r *Reconciler) changes(key controller.Key) (cluster string, write, remove []*rbacv1.ClusterRoleBinding) {
	org, ws, ok := r.config.Workspace(key)
	if !ok || !ws.KCPReady {
		return "", nil, nil
	}
	grants := tenancy.Grants(org, ws.UUID, r.config.Memberships(key.Cluster), r.config.User)
	write, remove = tenancy.BindingChanges(r.config.Bindings(ws.ClusterID), grants)
	return ws.ClusterID, write, remove
}

// Package access derives what people may do in a child Workspace from the
// Memberships of its Org (O-15): one binding per person and role, nothing shared
// but the binding of the sudo group.
package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

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
	// Bindings are the hub's own in a logical cluster. Seen tells whether they are all:
	// a tenant may hide them from the hub for a while.
	Bindings func(cluster string) []*rbacv1.ClusterRoleBinding
	Seen     func(cluster string) bool
	// ClusterRoles are all in a logical cluster, tenants' among them.
	ClusterRoles func(cluster string) []*rbacv1.ClusterRole

	WriteRole     func(ctx context.Context, cluster string, r *rbacv1.ClusterRole) error
	RemoveRole    func(ctx context.Context, cluster string, r *rbacv1.ClusterRole) error
	WriteBinding  func(ctx context.Context, cluster string, b *rbacv1.ClusterRoleBinding) error
	RemoveBinding func(ctx context.Context, cluster string, b *rbacv1.ClusterRoleBinding) error
	// EmptyBinding takes all subjects out of a binding of the hub's, however often it is
	// written meanwhile, and all finalizers, which would keep it.
	EmptyBinding func(ctx context.Context, cluster string, b *rbacv1.ClusterRoleBinding) error
	// Unbind takes the person of a username out of all bindings in a logical cluster
	// that tenants made, and out of those of the hub's that are not as one of the wanted.
	Unbind func(ctx context.Context, cluster, identity string, wanted []*rbacv1.ClusterRoleBinding) error

	Clock clock.PassiveClock
}

// Reconciler keeps the bindings.
type Reconciler struct {
	config Config
	ended  ended
}

// New returns the reconciler.
func New(c Config) *Reconciler {
	return &Reconciler{config: c, ended: ended{clock: c.Clock, at: map[place]end{}, held: map[types.UID]time.Time{}}}
}

// Reconcile makes the bindings of one Workspace as they should be.
func (r *Reconciler) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	// Read before the grants, which then know of it: a right that ends during the pass
	// is for the next one, not to be taken for one that was given again.
	ended := r.ended.of(key)
	cluster, due, c := r.changes(key, "")
	if cluster == "" {
		return controller.Result{}, nil
	}
	changes, within := errgroup.WithContext(ctx)
	changes.SetLimit(16)
	// Rights that ended go first.
	each(within, changes, cluster, c.RemoveBindings, func(ctx context.Context, cluster string, b *rbacv1.ClusterRoleBinding) error {
		return r.removeBinding(ctx, cluster, b, due.wanted)
	})
	each(within, changes, cluster, c.RemoveRoles, r.config.RemoveRole)
	each(within, changes, cluster, c.WriteRoles, r.config.WriteRole)
	each(within, changes, cluster, c.WriteBindings, r.config.WriteBinding)
	failed := changes.Wait()
	after, err := r.sweep(ctx, cluster, ended, due)
	return controller.Result{RequeueAfter: after}, errors.Join(failed, err)
}

func each[T any](ctx context.Context, g *errgroup.Group, cluster string, objects []T, f func(context.Context, string, T) error) {
	for _, o := range objects {
		g.Go(func() error { return f(ctx, cluster, o) })
	}
}

// removeBinding ends a right. A finalizer that tenants gave the binding would keep it,
// so it is emptied first. Whoever could write bindings keeps nothing that they could
// have bound themselves to: while they could, it gave them nothing, so nothing is lost
// with it. As their binding is empty, nothing new is bound while the old is looked
// for, and it goes last, so that a pass that was stopped is known from it.
func (r *Reconciler) removeBinding(ctx context.Context, cluster string, b *rbacv1.ClusterRoleBinding, wanted []*rbacv1.ClusterRoleBinding) error {
	if len(b.Subjects) > 0 || len(b.Finalizers) > 0 {
		if err := r.config.EmptyBinding(ctx, cluster, b); err != nil {
			return err
		}
		if len(b.Finalizers) > 0 {
			r.ended.emptied(b.UID)
		}
	}
	if user, ok := r.config.User(tenancy.BoundAtWill(b)); ok {
		if err := r.config.Unbind(ctx, cluster, user.Spec.RBACIdentity, wanted); err != nil {
			return err
		}
	}
	if !r.ended.copied(b.UID) {
		return fmt.Errorf("%w: kcp's copy of a binding is to be empty before it goes", controller.ErrRetry)
	}
	return r.config.RemoveBinding(ctx, cluster, b)
}

// Missing counts what is not as it should be in a Workspace; what is not seen counts.
func (r *Reconciler) Missing(key controller.Key) int {
	cluster, _, c := r.changes(key, "")
	return c.Count() + r.unseen(cluster)
}

// MissingOf counts what of one person is not as it should be in a Workspace; what is
// not seen counts.
func (r *Reconciler) MissingOf(key controller.Key, user string) int {
	cluster, _, c := r.changes(key, user)
	return c.OnlyOf(user).Count() + r.unseen(cluster)
}

func (r *Reconciler) unseen(cluster string) int {
	if cluster == "" || r.config.Seen(cluster) {
		return 0
	}
	return 1
}

// due is what people are to have in a Workspace.
type due struct {
	grants []tenancy.Grant
	wanted []*rbacv1.ClusterRoleBinding
}

// changes compares what is with what should be. Of the Memberships only those of
// one person count where only names them; what is found of others then is wrong.
func (r *Reconciler) changes(key controller.Key, only string) (cluster string, d due, c tenancy.AccessChanges) {
	org, ws, ok := r.config.Workspace(key)
	if !ok || !ws.KCPReady {
		return "", d, c
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
	d.grants = tenancy.Grants(org, ws.UUID, memberships, r.config.User)
	access := tenancy.AccessOf(ws.UUID, d.grants, func(name string) bool {
		// kcp goes by its copy of one that is being deleted, and shows another.
		return slices.ContainsFunc(roles, func(r *rbacv1.ClusterRole) bool { return r.Name == name && r.DeletionTimestamp.IsZero() })
	})
	d.wanted = access.Bindings
	return ws.ClusterID, d, access.Changes(roles, r.config.Bindings(ws.ClusterID))
}

package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	corev1 "k8s.io/api/core/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/bootstrap"
	"github.com/faroshq/kedge-hub/pkg/reconciler/access"
	"github.com/faroshq/kedge-hub/pkg/reconciler/membershipindex"
	"github.com/faroshq/kedge-hub/pkg/reconciler/organization"
	"github.com/faroshq/kedge-hub/pkg/reconciler/workspace"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// writes are the reconcilers' hands.
type writes struct {
	clients  *kcp.Clients
	clusters bootstrap.Clusters
	tree     tenancy.Tree
}

// put makes an object, or replaces the one whose resource version it carries.
// That somebody was faster is a reason to look again, not a failure.
func put[T kcp.Object](ctx context.Context, client *kcp.Client[T], o T) error {
	var err error
	if o.GetResourceVersion() == "" {
		_, err = client.Create(ctx, o, metav1.CreateOptions{FieldManager: kcp.FieldManager})
	} else {
		_, err = client.Update(ctx, o, metav1.UpdateOptions{FieldManager: kcp.FieldManager})
	}
	return again(err)
}

// create makes an object that may be there already.
func create[T kcp.Object](ctx context.Context, client *kcp.Client[T], o T) error {
	_, err := client.Create(ctx, o, metav1.CreateOptions{FieldManager: kcp.FieldManager})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func remove[T kcp.Object](ctx context.Context, client *kcp.Client[T], o T) error {
	uid := o.GetUID()
	err := client.Delete(ctx, o.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return again(err)
}

func again(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %w", controller.ErrRetry, err)
	}
	return err
}

func subresources(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

func (w *writes) createMembership(ctx context.Context, cluster string, m *v1alpha1.Membership) error {
	return create(ctx, w.clients.Memberships(cluster), m)
}

// initialized takes the hub's initializer off an Org's logical cluster, on
// whichever shard it is.
func (w *writes) initialized(ctx context.Context, org, cluster string) error {
	patch := fmt.Appendf(nil, `[{"op":"test","path":"/status/initializers","value":[%q]},{"op":"replace","path":"/status/initializers","value":[]}]`, w.clusters.Initializer)
	var last error
	for _, url := range w.clusters.Initializing {
		_, err := w.clients.LogicalClusters(url+"/clusters/"+cluster).Patch(ctx, "cluster", types.JSONPatchType, patch, metav1.PatchOptions{}, "status")
		switch {
		case err == nil:
			return w.nudge(ctx, org)
		case apierrors.IsNotFound(err), apierrors.IsForbidden(err), apierrors.IsInvalid(err):
			// It is on another shard, or initialized already; kcp's next event tells.
			last = fmt.Errorf("%w: %w", controller.ErrRetry, err)
		default:
			return err
		}
	}
	return last
}

// nudge changes an Org's kcp Workspace, so that kcp looks at its logical cluster
// now: by itself it does so after a fifth of the time that has passed.
func (w *writes) nudge(ctx context.Context, org string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, v1alpha1.InitializedAnnotation)
	_, err := w.clients.Workspaces(w.clusters.Orgs).Patch(ctx, org, types.MergePatchType, patch, metav1.PatchOptions{})
	return again(err)
}

func (c *controllers) organizationConfig(w *writes, tree tenancy.Tree) organization.Config {
	return organization.Config{
		Tree: tree, Clock: clock.RealClock{},
		Get: func(key controller.Key) (*v1alpha1.Organization, bool) {
			return c.in.Organizations.Get(key.Cluster, key.Name)
		},
		Workspace: func(org string) (*kcptenancyv1alpha1.Workspace, bool) {
			return c.in.Workspaces.Get(c.clusters.Orgs, org)
		},
		Waiting:     c.waiting,
		Memberships: c.views.MembershipsIn,
		Patch: func(ctx context.Context, key controller.Key, patch []byte, subresource string) error {
			o, err := w.clients.Organizations(key.Cluster).Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{}, subresources(subresource)...)
			// Only a status: after any other patch the event must bring the key back.
			if err == nil && subresource != "" {
				c.organizationEcho.Wrote(key, o.ResourceVersion)
			}
			return err
		},
		CreateWorkspace: func(ctx context.Context, ws *kcptenancyv1alpha1.Workspace) error {
			return create(ctx, w.clients.Workspaces(c.clusters.Orgs), ws)
		},
		CreateMembership: w.createMembership,
		Initialized:      w.initialized,
	}
}

func (c *controllers) workspaceConfig(w *writes, missing func(controller.Key) int) workspace.Config {
	return workspace.Config{
		Clock: clock.RealClock{},
		Get: func(key controller.Key) (*kcptenancyv1alpha1.Workspace, bool) {
			if _, ok := c.views.OrgByCluster(key.Cluster); !ok {
				return nil, false
			}
			return c.in.Workspaces.Get(key.Cluster, key.Name)
		},
		Namespace:     c.in.Namespaces.Get,
		ClusterRoles:  c.in.ClusterRoles.InCluster,
		Bindings:      c.in.Bindings.InCluster,
		AccessMissing: missing,
		Patch: func(ctx context.Context, key controller.Key, patch []byte, subresource string) error {
			ws, err := w.clients.Workspaces(key.Cluster).Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{}, subresources(subresource)...)
			if err == nil && bytes.Contains(patch, []byte(v1alpha1.StatusAnnotation)) {
				c.workspaceEcho.Wrote(key, ws.ResourceVersion)
			}
			return err
		},
		CreateMembership: w.createMembership,
		ApplyNamespace: func(ctx context.Context, cluster string, n *corev1.Namespace) error {
			raw, err := yaml.Marshal(n)
			if err != nil {
				return err
			}
			return w.clients.Apply(ctx, cluster, raw)
		},
		WriteClusterRole: func(ctx context.Context, cluster string, r *rbacv1.ClusterRole) error {
			return replace(ctx, w.clients.ClusterRoles(cluster), r)
		},
		RestoreAPIBinding: func(ctx context.Context, cluster string) error {
			return bootstrap.RestoreAccessBinding(ctx, w.clients, w.tree, cluster)
		},
	}
}

// replace is put for an object whose label may have been taken off, so that it is
// there but not in sight.
func replace[T kcp.Object](ctx context.Context, client *kcp.Client[T], o T) error {
	err := put(ctx, client, o)
	if !errors.Is(err, controller.ErrRetry) || o.GetResourceVersion() != "" {
		return err
	}
	hidden, getErr := client.Get(ctx, o.GetName(), metav1.GetOptions{})
	if getErr != nil {
		return again(getErr)
	}
	o.SetResourceVersion(hidden.GetResourceVersion())
	return put(ctx, client, o)
}

func (c *controllers) accessConfig(w *writes) access.Config {
	return access.Config{
		Workspace: func(key controller.Key) (tenancy.Org, tenancy.Workspace, bool) {
			org, ok := c.views.OrgByCluster(key.Cluster)
			if !ok {
				return tenancy.Org{}, tenancy.Workspace{}, false
			}
			ws, ok := c.views.Workspace(org.UUID(), key.Name)
			return org, ws, ok
		},
		Memberships: c.views.MembershipsIn,
		User:        c.views.ByName,
		Bindings:    c.in.ClusterRoleBindings.InCluster,
		Write: func(ctx context.Context, cluster string, b *rbacv1.ClusterRoleBinding) error {
			return replace(ctx, w.clients.ClusterRoleBindings(cluster), b)
		},
		Delete: func(ctx context.Context, cluster string, b *rbacv1.ClusterRoleBinding) error {
			return remove(ctx, w.clients.ClusterRoleBindings(cluster), b)
		},
	}
}

func (c *controllers) indexConfig(w *writes) membershipindex.Config {
	return membershipindex.Config{
		User:   c.views.ByName,
		Places: c.places,
		Index: func(user string) (*v1alpha1.UserMembershipIndex, bool) {
			return c.in.Indexes.Get(c.clusters.Users, user)
		},
		Create: func(ctx context.Context, i *v1alpha1.UserMembershipIndex) error {
			return put(ctx, w.clients.Indexes(c.clusters.Users), i)
		},
		Update: func(ctx context.Context, i *v1alpha1.UserMembershipIndex) error {
			return put(ctx, w.clients.Indexes(c.clusters.Users), i)
		},
		Delete: func(ctx context.Context, i *v1alpha1.UserMembershipIndex) error {
			return remove(ctx, w.clients.Indexes(c.clusters.Users), i)
		},
	}
}

// places are where a User is, by their Memberships. What the views do not know
// yet is left out; its own event brings the User back.
func (c *controllers) places(user string) []tenancy.Place {
	var places []tenancy.Place
	for _, m := range c.views.MembershipsOf(user) {
		cluster := kcp.ClusterOf(m)
		org, ok := c.views.OrgByCluster(cluster)
		if !ok || org.Organization == nil || !m.DeletionTimestamp.IsZero() {
			continue
		}
		p := tenancy.Place{Org: org, FirstAdmin: tenancy.FirstAdmin(org, c.views.MembershipsIn(cluster)), Role: m.Spec.Role}
		if ref := m.Spec.WorkspaceRef; ref != nil {
			ws, ok := c.views.Workspace(org.UUID(), ref.Name)
			if !ok {
				continue
			}
			p.Workspace = &ws
		}
		places = append(places, p)
	}
	return places
}

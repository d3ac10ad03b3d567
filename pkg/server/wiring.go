package server

import (
	"bytes"
	"context"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/reconciler/access"
	"github.com/faroshq/kedge-hub/pkg/reconciler/workspace"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func (w *writes) keep(wanted []*kcpapisv1alpha2.APIBinding, held func(cluster string) []*kcpapisv1alpha2.APIBinding) tenancy.Bindings {
	return tenancy.Bindings{
		Wanted: wanted,
		Held:   held,
		List: func(ctx context.Context, cluster string) ([]kcpapisv1alpha2.APIBinding, error) {
			return apiBindingsIn(ctx, w.clients, cluster)
		},
		Write: func(ctx context.Context, cluster string, b *kcpapisv1alpha2.APIBinding) error {
			return put(ctx, w.clients.APIBindings(cluster), b)
		},
	}
}

func apiBindingsIn(ctx context.Context, clients *kcp.Clients, cluster string) ([]kcpapisv1alpha2.APIBinding, error) {
	var list kcpapisv1alpha2.APIBindingList
	err := listAll(ctx, clients.APIBindings(cluster), "apibindings", &list)
	return list.Items, err
}

func (c *controllers) workspaceConfig(w *writes, missing func(controller.Key) int) workspace.Config {
	return workspace.Config{
		Clock: c.config.Clock,
		Get: func(key controller.Key) (*kcptenancyv1alpha1.Workspace, bool) {
			// What is in a soft-deleted Org is frozen with it, and not to be written to.
			org, ok := c.views.OrgByCluster(key.Cluster)
			if !ok || c.frozen(org) {
				return nil, false
			}
			return c.in.Workspaces.Get(key.Cluster, key.Name)
		},
		Read: func(ctx context.Context, cluster, name string) (*kcptenancyv1alpha1.Workspace, error) {
			ws, err := w.clients.Workspaces(cluster).Get(ctx, name, metav1.GetOptions{})
			return ws, again(err)
		},
		Namespace:     c.in.Namespaces.Get,
		ClusterRoles:  c.in.ClusterRoles.InCluster,
		Bindings:      c.workspaceBindings,
		Policy:        &policies{Policy: c.clusters.WorkspacePolicy, clients: w.clients, in: c.in},
		AccessMissing: missing,
		User:          c.views.ByName,
		Template:      c.template,
		Lifecycle: workspace.Lifecycle{
			Grace: c.config.DeletionGrace, Freeze: retrying(c.deps.Freezer.Deactivate), Thaw: retrying(c.deps.Freezer.Activate),
			Release: retrying(c.deps.Freezer.ActivateForDeletion), Shut: c.deps.Freezer.Deactivated,
			Closed: func(orgCluster string) bool {
				org, ok := c.views.OrgByCluster(orgCluster)
				return ok && c.frozen(org)
			},
			Remove: func(ctx context.Context, orgCluster string, ws *kcptenancyv1alpha1.Workspace) error {
				return fenced(ctx, w.clients.Workspaces(orgCluster), ws)
			},
			ListMemberships: w.listMemberships, RemoveMembership: w.removeMembership, Purged: c.purgedWorkspace,
		},
		Patch: func(ctx context.Context, key controller.Key, patch []byte, subresource string) error {
			ws, err := w.clients.Workspaces(key.Cluster).Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{}, subresources(subresource)...)
			if err == nil && bytes.Contains(patch, []byte(v1alpha1.StatusAnnotation)) {
				c.workspaceEcho.Wrote(key, ws.ResourceVersion)
			}
			return err
		},
		CreateMembership: w.createMembership,
		ApplyNamespace: func(ctx context.Context, cluster string, n *corev1.Namespace) error {
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(n)
			if err != nil {
				return err
			}
			_, err = w.clients.Apply(ctx, cluster, &unstructured.Unstructured{Object: fields})
			return err
		},
		WriteClusterRole: func(ctx context.Context, cluster string, r *rbacv1.ClusterRole) error {
			return replace(ctx, w.clients.ClusterRoles(cluster), r)
		},
	}
}

func (c *controllers) accessConfig(w *writes) access.Config {
	return access.Config{
		Workspace: func(key controller.Key) (tenancy.Org, tenancy.Workspace, bool) {
			org, ok := c.views.OrgByCluster(key.Cluster)
			if !ok {
				return tenancy.Org{}, tenancy.Workspace{}, false
			}
			ws, ok := c.views.Workspace(org.UUID(), key.Name)
			// A deactivated Workspace keeps its bindings: undeleted, it is as it was.
			return org, ws, ok && (!org.Deleted() && !ws.Deleted() ||
				tenancy.DeactivationForbidden(org.Status.Conditions) || tenancy.DeactivationForbidden(ws.Status.Conditions))
		},
		Memberships:  c.views.MembershipsOver,
		Membership:   c.views.Membership,
		User:         c.views.ByName,
		Bindings:     c.in.ClusterRoleBindings.InCluster,
		ClusterRoles: c.in.ClusterRoles.InCluster,
		WriteRole: func(ctx context.Context, cluster string, r *rbacv1.ClusterRole) error {
			return replace(ctx, w.clients.ClusterRoles(cluster), r)
		},
		RemoveRole: func(ctx context.Context, cluster string, r *rbacv1.ClusterRole) error {
			return remove(ctx, w.clients.ClusterRoles(cluster), r)
		},
		WriteBinding: func(ctx context.Context, cluster string, b *rbacv1.ClusterRoleBinding) error {
			return replace(ctx, w.clients.ClusterRoleBindings(cluster), b)
		},
		RemoveBinding: func(ctx context.Context, cluster string, b *rbacv1.ClusterRoleBinding) error {
			return remove(ctx, w.clients.ClusterRoleBindings(cluster), b)
		},
	}
}

// frozen tells whether the Org's own logical cluster takes no writes.
func (c *controllers) frozen(org tenancy.Org) bool {
	return org.Organization != nil && org.Status.DeletionRequestedAt != nil && org.DeletionTimestamp.IsZero()
}

func (c *controllers) rights() rights {
	return rights{of: c.followed, everywhere: c.followedEverywhere, ofAll: c.followedByAll}
}

// followedEverywhere is followed for all Orgs that the person is in.
func (c *controllers) followedEverywhere(user string) bool {
	for _, m := range c.views.MembershipsOf(user) {
		if org, ok := c.views.OrgByCluster(kcp.ClusterOf(m)); ok && !c.followed(org.UUID(), "", user) {
			return false
		}
	}
	return true
}

// followedByAll is followed for everybody in the Org.
func (c *controllers) followedByAll(orgUUID string) bool {
	org, ok := c.views.Org(orgUUID)
	if !ok {
		return true
	}
	for _, ws := range c.views.Workspaces(orgUUID) {
		if !ws.Deleted() && c.accessReconciler.Missing(controller.Key{Cluster: org.ClusterID, Name: ws.UUID}) > 0 {
			return false
		}
	}
	return true
}

// followed tells whether what a person may do in the Org's Workspaces, or in the
// one of that UUID, is in kcp as the Memberships say.
func (c *controllers) followed(orgUUID, workspace, user string) bool {
	org, ok := c.views.Org(orgUUID)
	if !ok {
		return true
	}
	for _, ws := range c.views.Workspaces(orgUUID) {
		if (workspace == "" || ws.UUID == workspace) && !ws.Deleted() &&
			c.accessReconciler.MissingOf(controller.Key{Cluster: org.ClusterID, Name: ws.UUID}, user) > 0 {
			return false
		}
	}
	return true
}

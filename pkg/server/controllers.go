package server

import (
	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/bootstrap"
	"github.com/faroshq/kedge-hub/pkg/kcp/informer"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/reconciler/access"
	"github.com/faroshq/kedge-hub/pkg/reconciler/membership"
	"github.com/faroshq/kedge-hub/pkg/reconciler/membershipindex"
	"github.com/faroshq/kedge-hub/pkg/reconciler/organization"
	"github.com/faroshq/kedge-hub/pkg/reconciler/user"
	"github.com/faroshq/kedge-hub/pkg/reconciler/workspace"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// controllers are the reconcilers and the events that wake them.
type controllers struct {
	deps     reconciler.Deps
	clusters bootstrap.Clusters
	in       *views.Informers
	config   Config
	audit    *audit.Log
	views    *views.Views
	metrics  *controller.Metrics

	organization, workspace, access, index, user, membership *controller.Controller
	// What the controllers wrote themselves.
	workspaceEcho *controller.Echo

	accessReconciler *access.Reconciler
	template         *workspace.Template
	// sweep looks for the definitions of tenants that came in by no replica's proxy,
	// or whose note was lost with the replica.
	sweep *controller.Controller
	// workspaceBindings are the APIBindings of child Workspaces that are the hub's.
	workspaceBindings tenancy.Bindings
}

func newControllers(d reconciler.Deps, in *views.Informers, config Config) *controllers {
	c := &controllers{
		deps: d, clusters: d.Clusters, in: in, views: d.Views, config: config, audit: d.Audit, metrics: d.Metrics,
		workspaceEcho: controller.NewEcho(),
	}
	clients, clusters, metrics, onEnqueue := d.Clients, d.Clusters, d.Metrics, d.OnEnqueue
	w := &writes{clients: clients, clusters: clusters, tree: config.Tree}
	c.workspaceBindings = w.keep(clusters.WorkspaceBindings, in.Bindings.InCluster)
	c.template = c.newTemplate(w)
	c.accessReconciler = access.New(c.accessConfig(w))
	workspaces := c.workspaceConfig(w, c.accessReconciler.Missing)
	workspaces.Get = controller.Seen(c.workspaceEcho, workspaces.Get)
	c.organization = organization.NewController(d)
	c.workspace = controller.New(controller.Options{Name: "workspace", OnEnqueue: onEnqueue, All: c.allWorkspaces}, metrics, workspace.New(workspaces))
	c.access = controller.New(controller.Options{Name: "access", OnEnqueue: onEnqueue, All: c.allWorkspaces}, metrics, c.accessReconciler.Reconcile)
	c.index = membershipindex.NewController(d)
	c.user = user.NewController(d)
	c.membership = membership.NewController(d)
	c.sweep = controller.New(controller.Options{Name: "customresources-sweep", OnEnqueue: onEnqueue, Workers: sweepers, All: c.allWorkspaces}, metrics, access.NewCustomResources(c.customResourcesConfig(clients)).Look)

	in.Organizations.OnChange(c.onOrganization)
	in.Workspaces.OnChange(c.onWorkspace)
	in.Memberships.OnChange(c.onMembership)
	in.Users.OnChange(c.onUser)
	d.Views.OnInactive(func(lc views.Change[*kcpcorev1alpha1.LogicalCluster]) {
		if key, ok := c.derivedIn(lc.Cluster()); ok {
			c.workspace.Enqueue(key)
		}
	})
	in.Namespaces.OnChange(onCluster[*corev1.Namespace](c.wakeDerived))
	in.ClusterRoles.OnChange(onCluster[*rbacv1.ClusterRole](c.wakeDerived))
	in.ClusterRoleBindings.OnChange(onCluster[*rbacv1.ClusterRoleBinding](c.wakeDerived))
	in.Bindings.OnChange(onCluster[*kcpapisv1alpha2.APIBinding](c.wakeDerived))
	d.Views.OnPolicy(func(p views.Change[*admissionv1.ValidatingAdmissionPolicy]) { c.wakeContent(p.Cluster()) })
	d.Views.OnPolicyBinding(func(b views.Change[*admissionv1.ValidatingAdmissionPolicyBinding]) { c.wakeContent(b.Cluster()) })
	return c
}

func (c *controllers) all() []*controller.Controller {
	return []*controller.Controller{c.organization, c.workspace, c.access, c.index, c.user, c.membership, c.sweep}
}

// current is the newer of the two objects of an event, which of a removal is the
// old one.
func current[T kcp.Object](old, new T) T {
	var none T
	if any(new) == any(none) {
		return old
	}
	return new
}

func onCluster[T kcp.Object](f func(cluster string)) informer.Handler[T] {
	return func(old, new T) { f(kcp.ClusterOf(current(old, new))) }
}

func (c *controllers) onOrganization(old, new *v1alpha1.Organization) {
	key := controller.Key{Cluster: c.clusters.Orgs, Name: current(old, new).Name}
	// What is derived from an Org does not follow from its status, but for the
	// mark of its deletion.
	if old == nil || new == nil || controller.Wakes(old, new) || !old.Status.DeletionRequestedAt.Equal(new.Status.DeletionRequestedAt) ||
		tenancy.DeactivationForbidden(old.Status.Conditions) != tenancy.DeactivationForbidden(new.Status.Conditions) {
		c.wakeOrg(key.Name)
	}
}

// wakeOrg brings back what is derived from an Org's own facts: the rows of
// everybody in it, and the rights in all of its Workspaces.
func (c *controllers) wakeOrg(uuid string) {
	org, ok := c.views.Org(uuid)
	if !ok || org.ClusterID == "" {
		return
	}
	c.wakeWorkspaces(org)
}

func (c *controllers) wakeWorkspaces(org tenancy.Org) {
	for _, ws := range c.views.Workspaces(org.UUID()) {
		c.wakeWorkspace(controller.Key{Cluster: org.ClusterID, Name: ws.UUID})
	}
}

func (c *controllers) wakeWorkspace(key controller.Key) {
	c.access.Enqueue(key)
	c.workspace.Enqueue(key)
}

func (c *controllers) onWorkspace(old, new *kcptenancyv1alpha1.Workspace) {
	ws := current(old, new)
	cluster := kcp.ClusterOf(ws)
	if cluster == c.clusters.Orgs {
		if old == nil || new == nil || old.Spec.Cluster != new.Spec.Cluster {
			c.wakeOrg(ws.Name)
		}
		return
	}
	key := controller.Key{Cluster: cluster, Name: ws.Name}
	if new == nil {
		c.workspaceEcho.Forget(key)
		c.template.Forget(old.Spec.Cluster)
	}
	if new == nil || !c.workspaceEcho.Is(key, new.ResourceVersion) {
		c.workspace.Enqueue(key)
	}
	if old != nil && new != nil && tenancy.DeactivationForbidden(tenancy.WorkspaceOf("", old).Status.Conditions) != tenancy.DeactivationForbidden(tenancy.WorkspaceOf("", new).Status.Conditions) {
		c.access.Enqueue(key)
	}
	if becameReady(old, new) {
		// What made it so may have brought definitions.
		c.sweep.Enqueue(key)
	}
	// What is derived from a Workspace follows neither from the hub's status of it
	// nor from what tenants define in it.
	if old == nil || new == nil || old.Status.Phase != new.Status.Phase || controller.Wakes(old, new, v1alpha1.StatusAnnotation, tenancy.CustomResourcesAnnotation) {
		c.access.Enqueue(key)
	}
}

func (c *controllers) onMembership(old, new *v1alpha1.Membership) {
	m := current(old, new)
	cluster := kcp.ClusterOf(m)
	// Nothing is derived from a Membership's status.
	if old != nil && new != nil && !controller.Wakes(old, new) {
		return
	}
	if ref := m.Spec.WorkspaceRef; ref != nil {
		at := controller.Key{Cluster: cluster, Name: ref.Name}
		c.wakeWorkspace(at)
		return
	}
	if org, ok := c.views.OrgByCluster(cluster); ok {
		c.wakeWorkspaces(org)
	}
}

func (c *controllers) onUser(old, new *v1alpha1.User) {
	u := current(old, new)
	if old != nil && new != nil && !controller.Wakes(old, new) && old.Status.DeletionRequestedAt.Equal(new.Status.DeletionRequestedAt) {
		return
	}
	// Who is new is in nothing yet; who goes or comes back is in many places.
	for _, m := range c.views.MembershipsOf(u.Name) {
		if org, ok := c.views.OrgByCluster(kcp.ClusterOf(m)); ok {
			c.wakeWorkspaces(org)
		}
	}
}

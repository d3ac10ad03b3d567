package server

import (
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/bootstrap"
	"github.com/faroshq/kedge-hub/pkg/kcp/informer"
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
	clusters bootstrap.Clusters
	in       *views.Informers
	config   Config
	audit    *audit.Log
	views    *views.Views
	metrics  *controller.Metrics

	organization, workspace, access, index, user, membership *controller.Controller
	// What the controllers wrote themselves.
	organizationEcho, workspaceEcho, userEcho, membershipEcho *controller.Echo

	accessReconciler *access.Reconciler
	// cannotFreeze is what kcp says to the hub's identity.
	cannotFreeze atomic.Bool
	template     *workspace.Template
	// sweep looks for the definitions of tenants that came in by no replica's proxy,
	// or whose note was lost with the replica.
	sweep *controller.Controller
	// orgBindings are the APIBindings of the Orgs' own workspaces, workspaceBindings those
	// of child Workspaces that are the hub's.
	orgBindings, workspaceBindings tenancy.Bindings
	// closed are the logical clusters that the hub has closed; none where it may not.
	closed *informer.Informer[*kcpcorev1alpha1.LogicalCluster]
}

func newControllers(registry prometheus.Registerer, clients, closer *kcp.Clients, closed *informer.Informer[*kcpcorev1alpha1.LogicalCluster], clusters bootstrap.Clusters, in *views.Informers, v *views.Views, config Config, log *audit.Log, onEnqueue func(controller string, key controller.Key)) (*controllers, error) {
	metrics, err := controller.NewMetrics(registry)
	if err != nil {
		return nil, err
	}
	c := &controllers{
		clusters: clusters, in: in, views: v, config: config, audit: log, metrics: metrics, closed: closed,
		organizationEcho: controller.NewEcho(), workspaceEcho: controller.NewEcho(),
		userEcho: controller.NewEcho(), membershipEcho: controller.NewEcho(),
	}
	w := &writes{clients: clients, closer: closer, clusters: clusters, tree: config.Tree, refused: c.notFrozen}

	c.orgBindings = w.keep(clusters.OrgBindings, in.OrgBindings.InCluster)
	c.workspaceBindings = w.keep(clusters.WorkspaceBindings, in.Bindings.InCluster)
	c.template = c.newTemplate(w)
	c.accessReconciler = access.New(c.accessConfig(w))
	organizations, workspaces := c.organizationConfig(w, config.Tree), c.workspaceConfig(w, c.accessReconciler.Missing)
	users, memberships := c.userConfig(w), c.membershipConfig(w)
	organizations.Get = controller.Seen(c.organizationEcho, organizations.Get)
	workspaces.Get = controller.Seen(c.workspaceEcho, workspaces.Get)
	users.Get = controller.Seen(c.userEcho, users.Get)
	memberships.Get = controller.Seen(c.membershipEcho, memberships.Get)
	c.organization = controller.New(controller.Options{Name: "organization", OnEnqueue: onEnqueue, All: c.allOrganizations}, metrics, organization.New(organizations))
	c.workspace = controller.New(controller.Options{Name: "workspace", OnEnqueue: onEnqueue, All: c.allWorkspaces}, metrics, workspace.New(workspaces))
	c.access = controller.New(controller.Options{Name: "access", OnEnqueue: onEnqueue, All: c.allWorkspaces}, metrics, c.accessReconciler.Reconcile)
	c.index = controller.New(controller.Options{Name: "membershipindex", OnEnqueue: onEnqueue, All: c.allIndexed}, metrics, membershipindex.New(c.indexConfig(w)))
	c.user = controller.New(controller.Options{Name: "user", OnEnqueue: onEnqueue, All: c.allUsers}, metrics, user.New(users))
	c.membership = controller.New(controller.Options{Name: "membership", OnEnqueue: onEnqueue, All: c.allMemberships}, metrics, membership.New(memberships))
	c.sweep = controller.New(controller.Options{Name: "customresources-sweep", OnEnqueue: onEnqueue, Workers: sweepers, All: c.allWorkspaces}, metrics, access.NewCustomResources(c.customResourcesConfig(clients)).Look)

	in.Organizations.OnChange(c.onOrganization)
	in.Workspaces.OnChange(c.onWorkspace)
	in.Initializing.OnChange(c.onInitializing)
	in.Memberships.OnChange(c.onMembership)
	in.Users.OnChange(c.onUser)
	in.Indexes.OnChange(onNamed(c.onIndex))
	in.Namespaces.OnChange(onCluster[*corev1.Namespace](c.wakeDerived))
	in.ClusterRoles.OnChange(c.onClusterRole)
	in.ClusterRoleBindings.OnChange(c.onClusterRoleBinding)
	in.Bindings.OnChange(onCluster[*kcpapisv1alpha2.APIBinding](c.wakeDerived))
	in.OrgBindings.OnChange(c.onOrgBinding)
	return c, nil
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

func onNamed(f func(name string)) informer.Handler[*v1alpha1.UserMembershipIndex] {
	return func(old, new *v1alpha1.UserMembershipIndex) { f(current(old, new).Name) }
}

func (c *controllers) onOrganization(old, new *v1alpha1.Organization) {
	key := controller.Key{Cluster: c.clusters.Orgs, Name: current(old, new).Name}
	if new == nil {
		c.organizationEcho.Forget(key)
	}
	// One event may hold somebody else's change and then our own, so an echo spares
	// the controller itself only.
	if new == nil || !c.organizationEcho.Is(key, new.ResourceVersion) {
		c.organization.Enqueue(key)
	}
	if by := current(old, new).Annotations[v1alpha1.CreatedByAnnotation]; by != "" && (old == nil || new == nil) {
		// A place in the creator's quota is taken, or free again.
		c.user.Enqueue(controller.Key{Cluster: c.clusters.Users, Name: by})
	}
	if o := current(old, new); o.Spec.Personal {
		c.user.Enqueue(controller.Key{Cluster: c.clusters.Users, Name: o.Annotations[v1alpha1.CreatedByAnnotation]})
	}
	// What is derived from an Org does not follow from its status, but for the
	// mark of its deletion.
	if old == nil || new == nil || controller.Wakes(old, new) || !old.Status.DeletionRequestedAt.Equal(new.Status.DeletionRequestedAt) {
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
	for _, m := range c.views.MembershipsIn(org.ClusterID) {
		c.wakeUser(m.Spec.UserRef.Name)
		c.membership.Enqueue(controller.Key{Cluster: org.ClusterID, Name: m.Name})
	}
	c.wakeWorkspaces(org)
}

func (c *controllers) wakeUser(name string) {
	c.index.Enqueue(controller.Key{Cluster: c.clusters.Users, Name: name})
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
		c.organization.Enqueue(controller.Key{Cluster: cluster, Name: ws.Name})
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
	if org, ok := c.views.OrgByCluster(cluster); ok && (old == nil || new == nil) {
		c.organization.Enqueue(controller.Key{Cluster: c.clusters.Orgs, Name: org.UUID()})
	}
	if org, ok := c.views.OrgByCluster(cluster); ok && org.Organization != nil {
		if org.Spec.Personal {
			c.user.Enqueue(controller.Key{Cluster: c.clusters.Users, Name: org.CreatedBy()})
		}
		if c.frozen(org) {
			c.organization.Enqueue(controller.Key{Cluster: c.clusters.Orgs, Name: org.UUID()})
		}
	}
	if becameReady(old, new) {
		// What made it so may have brought definitions.
		c.sweep.Enqueue(key)
	}
	// What is derived from a Workspace follows neither from the hub's status of it
	// nor from what tenants define in it.
	if old == nil || new == nil || old.Status.Phase != new.Status.Phase || controller.Wakes(old, new, v1alpha1.StatusAnnotation, tenancy.CustomResourcesAnnotation) {
		c.access.Enqueue(key)
		for _, m := range c.views.MembershipsAt(cluster, ws.Name) {
			c.wakeUser(m.Spec.UserRef.Name)
			c.membership.Enqueue(controller.Key{Cluster: cluster, Name: m.Name})
		}
	}
}

// onInitializing brings back the Org whose logical cluster waits for the hub.
func (c *controllers) onInitializing(_, lc *kcpcorev1alpha1.LogicalCluster) {
	if lc == nil || !c.waitsForUs(lc) {
		return
	}
	c.organization.Enqueue(controller.Key{Cluster: c.clusters.Orgs, Name: lc.Spec.Owner.Name})
}

// waitsForUs tells whether nothing but the hub's initializer keeps the logical
// cluster of an Org from being ready.
func (c *controllers) waitsForUs(lc *kcpcorev1alpha1.LogicalCluster) bool {
	return lc.Spec.Owner != nil && lc.Spec.Owner.Cluster == c.clusters.Orgs &&
		slices.Equal(lc.Status.Initializers, []kcpcorev1alpha1.LogicalClusterInitializer{kcpcorev1alpha1.LogicalClusterInitializer(c.clusters.Initializer)})
}

// waiting finds the logical cluster of an Org that waits for the hub; they are
// few at any time.
func (c *controllers) waiting(org string) (cluster string, ok bool) {
	for lc := range c.in.Initializing.All() {
		if c.waitsForUs(lc) && lc.Spec.Owner.Name == org {
			return kcp.ClusterOf(lc), true
		}
	}
	return "", false
}

func (c *controllers) onMembership(old, new *v1alpha1.Membership) {
	m := current(old, new)
	cluster := kcp.ClusterOf(m)
	key := controller.Key{Cluster: cluster, Name: m.Name}
	if new == nil {
		c.membershipEcho.Forget(key)
	}
	if new == nil || !c.membershipEcho.Is(key, new.ResourceVersion) {
		c.membership.Enqueue(key)
	}
	// Nothing is derived from a Membership's status.
	if old != nil && new != nil && !controller.Wakes(old, new) {
		return
	}
	c.wakeUser(m.Spec.UserRef.Name)
	stops := tenancy.StopsBinding(old, new)
	if ref := m.Spec.WorkspaceRef; ref != nil {
		at := controller.Key{Cluster: cluster, Name: ref.Name}
		if stops {
			c.accessReconciler.Ended(at, m.Spec.UserRef.Name)
		}
		c.wakeWorkspace(at)
		return
	}
	if org, ok := c.views.OrgByCluster(cluster); ok {
		for _, ws := range c.views.Workspaces(org.UUID()) {
			if stops {
				c.accessReconciler.Ended(controller.Key{Cluster: cluster, Name: ws.UUID}, m.Spec.UserRef.Name)
			}
		}
		c.wakeWorkspaces(org)
		c.organization.Enqueue(controller.Key{Cluster: c.clusters.Orgs, Name: org.UUID()})
	}
}

func (c *controllers) onUser(old, new *v1alpha1.User) {
	u := current(old, new)
	key := controller.Key{Cluster: c.clusters.Users, Name: u.Name}
	if new == nil {
		c.userEcho.Forget(key)
	}
	if new == nil || !c.userEcho.Is(key, new.ResourceVersion) {
		c.user.Enqueue(key)
	}
	if old != nil && new != nil && !controller.Wakes(old, new) && old.Status.DeletionRequestedAt.Equal(new.Status.DeletionRequestedAt) {
		return
	}
	c.wakeUser(u.Name)
	// Who is new is in nothing yet; who goes or comes back is in many places.
	for _, m := range c.views.MembershipsOf(u.Name) {
		c.membership.Enqueue(controller.Key{Cluster: kcp.ClusterOf(m), Name: m.Name})
		if org, ok := c.views.OrgByCluster(kcp.ClusterOf(m)); ok {
			c.wakeWorkspaces(org)
		}
	}
}

func (c *controllers) onIndex(name string) { c.wakeUser(name) }

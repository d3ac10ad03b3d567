package reconciler

import (
	"context"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/freeze"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/bootstrap"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// Deps are the dependencies of the controllers.
type Deps struct {
	// Clients and Freezer write to kcp. Their writes fail once this replica is not the
	// leader any more.
	Clients *kcp.Clients
	Freezer *freeze.Freezer
	// Views are the cache that controllers read and subscribe to.
	Views *views.Views
	// Clusters are the logical clusters of the hub's tree.
	Clusters bootstrap.Clusters
	// Initializing are the URLs of the virtual workspaces that serve the initializer of the
	// organization type, one per shard.
	Initializing func() []string
	Settings     Settings
	Metrics      *controller.Metrics
	Audit        *audit.Log
	// OnEnqueue is called for every key that a controller enqueues; nil for none.
	OnEnqueue func(controller string, key controller.Key)
	// ProbeBackend asks the server of a provider whether it is there. The error says why it is
	// not; it is for the log, and people do not see it.
	ProbeBackend func(ctx context.Context, url string) error
}

// Settings are the options of the hub that controllers depend on.
type Settings struct {
	Tree tenancy.Tree
	// Clock decides when a grace period is over; it runs no faster than kcp's clock.
	Clock clock.PassiveClock
	// RequestClock dates requests for deletion; it runs no slower than kcp's clock.
	RequestClock clock.PassiveClock
	// RightsClock is the time by which rights, sessions and tokens of bots end: kcp's, by its latest answers.
	RightsClock clock.PassiveClock
	// Graces are the times during which something soft-deleted can be undeleted.
	tenancy.Graces
	// Hold, if not nil, reports that nothing is purged, though its grace period is over.
	Hold func() bool
	// Replaying is true while a hub ends what ended after the backup that it was restored from.
	Replaying bool
	// PersonalOrgs says whether every User gets a personal Organization, with the role
	// PersonalOrgRole in it.
	PersonalOrgs    bool
	PersonalOrgRole v1alpha1.Role
	// Billing is that of a new personal Organization.
	Billing *v1alpha1.Billing
	// BindableClusterRoles are the names of ClusterRoles that Memberships can bind whatever
	// their rules are.
	BindableClusterRoles []string
	// GroupMaxAge is for how long groups count after the issue of the credential that says them.
	GroupMaxAge time.Duration
	// SessionIdleTimeout is the time without a use after which a Session ends.
	SessionIdleTimeout time.Duration
	// CIIssuers are the identity providers whose jobs Bots may trust.
	CIIssuers []string
	// PolicyWindow is the time for which dry runs, each on a connection of its own, have to show
	// that kcp enforces the admission policy of a Workspace. Zero means that one dry run is enough.
	PolicyWindow time.Duration
	// Spares are the workspaces that are kept ready.
	Spares Spares
	// Template has the manifests that every child Workspace gets.
	Template []*unstructured.Unstructured
}

// Spares are the numbers of spares, and what identifies those of this hub.
type Spares struct {
	// Organizations is the number of spare Organizations. Workspaces is that of spare Workspaces in every
	// Organization that is in use.
	Organizations, Workspaces int
	// Hash identifies what spares are made with: the admission policy, roles, template and version.
	Hash string
	// Full reports whether the store has no room for anything new.
	Full func() bool
}

// Controller returns a controller that calls work for each of its keys.
func (d Deps) Controller(options controller.Options, work controller.Func) *controller.Controller {
	options.OnEnqueue = d.OnEnqueue
	return controller.New(options, d.Metrics, work)
}

// Roles returns the roles of the logical cluster of a child Workspace.
func (d Deps) Roles(cluster string) tenancy.RoleSource {
	return tenancy.RoleSource{
		ClusterRole: func(name string) (*rbacv1.ClusterRole, bool) { return d.Views.ClusterRoles.Get(cluster, name) },
		Role: func(namespace, name string) (*rbacv1.Role, bool) {
			return d.Views.Roles.Get(cluster, tenancy.NamespacedName(namespace, name))
		},
		Namespace: func(name string) (metav1.Object, bool) { return d.Views.Namespaces.Get(cluster, name) },
		Bindable:  d.Settings.BindableClusterRoles,
	}
}

// Objects returns the repositories of the kinds that controllers write.
func (d Deps) Objects() objects.Objects {
	v := d.Views
	return objects.New(d.Clients, objects.Caches{
		Users: v.Users, Organizations: v.Organizations, Memberships: v.Memberships, Indexes: v.Indexes,
		Bots: v.Bots, Sessions: v.Sessions, Invitations: v.Invitations, AccessRequests: v.AccessRequests,
		CatalogEntries: v.CatalogEntries, Workspaces: v.ChildWorkspaces, Bindings: v.Bindings, ServiceAccounts: v.ServiceAccounts, BotSecrets: v.BotSecrets,
		ClusterRoles: v.ClusterRoles, ClusterRoleBindings: v.ClusterRoleBindings, RoleBindings: v.RoleBindings,
	}, d.Settings.Tree)
}

// Keys returns the keys of views as those of controllers.
func Keys(list func() []views.Key) func() []controller.Key {
	return func() []controller.Key {
		found := list()
		keys := make([]controller.Key, len(found))
		for i, key := range found {
			keys[i] = controller.Key(key)
		}
		return keys
	}
}

// Organization returns the key of the Organization with that UUID.
func (d Deps) Organization(uuid string) controller.Key {
	return controller.Key{Cluster: d.Clusters.Orgs, Name: uuid}
}

// Workspace returns the key of a child Workspace; ok is false while its Organization has
// no logical cluster.
func (d Deps) Workspace(ws tenancy.Workspace) (key controller.Key, ok bool) {
	org, ok := d.Views.Org(ws.OrgUUID)
	return controller.Key{Cluster: org.ClusterID, Name: ws.UUID}, ok && org.ClusterID != ""
}

// Places counts the Memberships of a User for an Organization that lets them in by a group.
func (d Deps) Places(o *v1alpha1.Organization, user string) tenancy.Places {
	maker := tenancy.Org{Organization: o}.Maker()
	return tenancy.CountPlaces(d.Views.MembershipsOf(user), func(m *v1alpha1.Membership) bool {
		org, ok := d.Views.OrgByCluster(kcp.ClusterOf(m))
		return ok && org.Organization != nil && org.Maker() == maker
	})
}

// User returns the key of the User with that name, and of their UserMembershipIndex.
func (d Deps) User(name string) controller.Key {
	return controller.Key{Cluster: d.Clusters.Users, Name: name}
}

// OrgDeactivated reports whether the Organization with its workspace in a logical cluster is Deactivated.
func (d Deps) OrgDeactivated(orgCluster string) bool {
	org, ok := d.Views.OrgByCluster(orgCluster)
	return ok && org.Deactivated()
}

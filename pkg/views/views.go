package views

import (
	"context"
	"slices"
	"sync"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/informer"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Config is what Views are made of.
type Config struct {
	Clusters
	// Clients watch. Admin can read deactivated logical clusters, too.
	Clients, Admin *kcp.Clients
	// OrgBindings are the APIBindings that the workspace of every Organization is to have.
	OrgBindings []*kcpapisv1alpha2.APIBinding
	// Clock is the time by which Memberships end. It is kcp's, which is the same for all replicas; nil
	// is the local time.
	Clock   clock.WithTicker
	Metrics prometheus.Registerer
}

// Clusters are the IDs of the hub's own logical clusters.
type Clusters struct {
	// Users, Orgs and Providers hold the objects of those names. The views ignore an
	// object of these kinds that comes from another logical cluster. Root has the type of
	// the workspaces of Organizations.
	Root, Users, Orgs, Providers string
	// Hub has all of them and the logical clusters above them (O-10).
	Hub []string
}

// Views answers from memory. The objects that it returns are shared: read only. It has a row for
// each kind that the hub watches.
type Views struct {
	Users         *Kind[*v1alpha1.User]
	Organizations *Kind[*v1alpha1.Organization]
	// Memberships are those of both scopes.
	Memberships *Kind[*v1alpha1.Membership]
	Indexes     *Kind[*v1alpha1.UserMembershipIndex]
	// Sessions have no ID token and no rotations.
	Sessions *Kind[*v1alpha1.Session]
	// CatalogEntries are those of all Organizations and the Global ones.
	CatalogEntries *Kind[*v1alpha1.CatalogEntry]
	// Bots are those of all Organizations.
	Bots *Kind[*v1alpha1.Bot]
	// Invitations are those of all Organizations.
	Invitations *Kind[*v1alpha1.Invitation]
	// AccessRequests are those of all Organizations.
	AccessRequests *Kind[*v1alpha1.AccessRequest]
	// OrgWorkspaces are kcp's objects of Organizations, ChildWorkspaces those of child Workspaces. As
	// listers both have all. They do not publish Spares, which nobody owns: a spare that is taken is an
	// addition to them, and a removal from Spares.
	OrgWorkspaces, ChildWorkspaces, Spares *Kind[*kcptenancyv1alpha1.Workspace]

	// OrgBindings are the APIBindings in the workspaces of Organizations and of the hub, Bindings
	// those in child Workspaces.
	OrgBindings, Bindings *Kind[*kcpapisv1alpha2.APIBinding]

	// Initializing are the logical clusters that wait for the hub's initializer.
	Initializing *Kind[*kcpcorev1alpha1.LogicalCluster]
	// Inactive are the deactivated logical clusters, which kcp shows to its shard admin only.
	Inactive *Kind[*kcpcorev1alpha1.LogicalCluster]

	// Namespaces, ClusterRoles and Roles are all of child Workspaces, because a Membership
	// may name a role of a tenant and a namespace. Of tenants' objects only names and
	// versions are kept, and tenancy.RulesAnnotation in place of the rules. What is in a
	// namespace is found by "namespace/name", here and below.
	Namespaces   *Kind[*corev1.Namespace]
	ClusterRoles *Kind[*rbacv1.ClusterRole]
	Roles        *Kind[*rbacv1.Role]
	// ClusterRoleBindings and RoleBindings are the hub's objects in child Workspaces, which
	// carry v1alpha1.ManagedByLabel.
	ClusterRoleBindings *Kind[*rbacv1.ClusterRoleBinding]
	RoleBindings        *Kind[*rbacv1.RoleBinding]
	// Policies and PolicyBindings are the admission policy of child Workspaces, with the
	// hashes of their specs in place of the specs.
	Policies       *Kind[*admissionv1.ValidatingAdmissionPolicy]
	PolicyBindings *Kind[*admissionv1.ValidatingAdmissionPolicyBinding]
	// ServiceAccounts and BotSecrets are the hub's objects for Bots in child Workspaces, which
	// carry v1alpha1.BotAccountLabel: no data, and no object of a tenant.
	ServiceAccounts *Kind[*corev1.ServiceAccount]
	BotSecrets      *Kind[*corev1.Secret]

	// These find objects by something else than their names.
	*people
	*topology
	*spares
	*memberships
	sessions
	bots
	invitations
	catalog
	creators *index[string, *v1alpha1.Organization]
	mappings *index[v1alpha1.GroupHash, *v1alpha1.Organization]
	enabled  *index[v1alpha1.APIExportRef, *kcpapisv1alpha2.APIBinding]

	clusters Clusters
	waiters  waiters
	metrics  metrics

	// Tenancy and Access are the endpoints of the exports, without which no request is answered: Access
	// serves what is in child Workspaces. Initializers are those of Initializing.
	Tenancy, Access, Initializers *informer.Endpoints
}

// New returns views that are empty until Run.
func New(c Config) (*Views, error) {
	v := &Views{
		people: newPeople(), topology: newTopology(c.Clusters, newExpiry(c.Clock)), spares: newSpares(c.Orgs), memberships: newMemberships(newExpiry(c.Clock)),
		sessions: newSessions(), bots: newBots(), invitations: newInvitations(),
		creators: newCreators(), mappings: newMappings(), enabled: newEnabled(), clusters: c.Clusters, metrics: newMetrics(),
	}
	v.catalog = newCatalog(v.topology, c.Providers)
	v.watchTenancy(c)
	v.watchAccess(c)
	v.memberships.lister = v.Memberships
	if err := v.metrics.register(c.Metrics); err != nil {
		return nil, err
	}
	return v, nil
}

// Run fills the views until ctx ends, but for Inactive.
func (v *Views) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, e := range append(v.Exports(), v.Initializers) {
		running.Go(func() { e.Run(ctx) })
	}
	running.Go(func() { v.expire(ctx) })
	running.Wait()
}

// workspace changes the topology. Where the logical cluster of an Organization changed, it
// drops the cached index rows of the Organization's members.
func (v *Views) workspace(cluster string, old, new *kcptenancyv1alpha1.Workspace) {
	v.topology.workspace(cluster, old, new)
	if cluster != v.topology.orgs {
		return
	}
	for _, ws := range []*kcptenancyv1alpha1.Workspace{old, new} {
		if ws != nil && (old == nil || new == nil || old.Spec.Cluster != new.Spec.Cluster) {
			v.memberships.moved(ws.Spec.Cluster)
		}
	}
}

// Index returns the rows of the User's UserMembershipIndex that have a Membership. It
// fails closed: a right ends as soon as either the row or the Membership is gone, or the Membership has
// ended by time.
func (v *Views) Index(user string) []v1alpha1.MembershipIndexEntry {
	return v.memberships.entries(user, v.topology.clusterOf)
}

// OrgsCreatedBy returns the UUIDs of the existing Orgs that the User created, in no order:
// soft-deleted ones included, the personal one not (O-5).
func (v *Views) OrgsCreatedBy(user string) (uuids []string) {
	for _, o := range v.creators.all(user) {
		uuids = append(uuids, o.Name)
	}
	return uuids
}

// OrgsMapping returns the UUIDs of the Orgs that map a group, in no order.
func (v *Views) OrgsMapping(hash v1alpha1.GroupHash) (uuids []string) {
	for _, o := range v.mappings.all(hash) {
		uuids = append(uuids, o.Name)
	}
	return uuids
}

// Sudo reports whether the User's Membership in a Workspace of the Org has sudo.
func (v *Views) Sudo(user, org, workspace string) bool {
	o, ok := v.Org(org)
	return ok && v.memberships.sudo(user, Key{o.ClusterID, tenancy.MembershipName(user, workspace)})
}

// BoundRoles returns those of spec.roles of the User's Membership in a Workspace of the Org that
// have a binding. A role that a Membership only names gives no right.
func (v *Views) BoundRoles(user, org, workspace string) []v1alpha1.RoleRef {
	o, ok := v.Org(org)
	if !ok {
		return nil
	}
	m, ok := v.Membership(o.ClusterID, tenancy.MembershipName(user, workspace))
	if !ok || !m.DeletionTimestamp.IsZero() || len(m.Spec.Roles) == 0 {
		return nil
	}
	ws, ok := v.Workspace(org, workspace)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(m.Spec.Roles), func(r v1alpha1.RoleRef) bool { return !v.HasExtraBinding(ws.ClusterID, user, r) })
}

// HasExtraBinding reports whether a logical cluster has the binding of a User to a role of
// spec.roles.
func (v *Views) HasExtraBinding(cluster, user string, r v1alpha1.RoleRef) bool {
	name := tenancy.NamespacedName(r.Namespace, tenancy.ExtraBindingName(r.Name, user))
	if r.Namespace == "" {
		_, ok := v.ClusterRoleBindings.Get(cluster, name)
		return ok
	}
	_, ok := v.RoleBindings.Get(cluster, name)
	return ok
}

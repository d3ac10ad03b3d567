package views

import (
	"iter"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Key names an object in a logical cluster.
type Key struct{ Cluster, Name string }

// Lister reads the objects of one kind from memory. They are shared: read only.
type Lister[T kcp.Object] interface {
	// Get returns the object of that name in a logical cluster.
	Get(cluster, name string) (T, bool)
	// InCluster returns all objects in a logical cluster, in no order.
	InCluster(cluster string) []T
	// All goes through all objects, in no order.
	All() iter.Seq[T]
}

// Listers has a Lister for each kind that the hub watches.
type Listers struct {
	Users         Lister[*v1alpha1.User]
	Organizations Lister[*v1alpha1.Organization]
	Memberships   Lister[*v1alpha1.Membership]
	Indexes       Lister[*v1alpha1.UserMembershipIndex]
	Bots          Lister[*v1alpha1.Bot]
	// Sessions have no ID token and no rotations.
	Sessions Lister[*v1alpha1.Session]
	// CatalogEntries are those of all Organizations and the Global ones.
	CatalogEntries Lister[*v1alpha1.CatalogEntry]

	// Workspaces holds those of Organizations and the child Workspaces.
	Workspaces             Lister[*kcptenancyv1alpha1.Workspace]
	Initializing, Inactive Lister[*kcpcorev1alpha1.LogicalCluster]
	// OrgBindings are in the workspaces of Organizations, Bindings in child Workspaces.
	OrgBindings, Bindings Lister[*kcpapisv1alpha2.APIBinding]

	Namespaces          Lister[*corev1.Namespace]
	ClusterRoles        Lister[*rbacv1.ClusterRole]
	ClusterRoleBindings Lister[*rbacv1.ClusterRoleBinding]
	// Roles and RoleBindings are found by "namespace/name".
	Roles        Lister[*rbacv1.Role]
	RoleBindings Lister[*rbacv1.RoleBinding]

	// ServiceAccounts and BotSecrets are those of Bots, found by "namespace/name".
	ServiceAccounts Lister[*corev1.ServiceAccount]
	BotSecrets      Lister[*corev1.Secret]

	// Policies and PolicyBindings have the hash of the spec only.
	Policies       Lister[*admissionv1.ValidatingAdmissionPolicy]
	PolicyBindings Lister[*admissionv1.ValidatingAdmissionPolicyBinding]
}

func listersOf(in *Informers) Listers {
	return Listers{
		Users: in.Users, Organizations: in.Organizations, Memberships: in.Memberships, Indexes: in.Indexes, Sessions: in.Sessions, CatalogEntries: in.CatalogEntries,
		Workspaces: in.Workspaces, Initializing: in.Initializing, Inactive: in.Inactive,
		OrgBindings: in.OrgBindings, Bindings: in.Bindings,
		Namespaces: in.Namespaces, ClusterRoles: in.ClusterRoles, ClusterRoleBindings: in.ClusterRoleBindings,
		Roles: in.Roles, RoleBindings: in.RoleBindings,
		Bots: in.Bots, ServiceAccounts: in.ServiceAccounts, BotSecrets: in.BotSecrets,
		Policies: in.Policies, PolicyBindings: in.PolicyBindings,
	}
}

// Listers returns the listers of all kinds.
func (v *Views) Listers() Listers { return v.listers }

// OrganizationKeys returns the keys of all Organizations.
func (v *Views) OrganizationKeys() []Key { return keys(v.listers.Organizations, v.clusters.Orgs) }

// UserKeys returns the keys of all Users.
func (v *Views) UserKeys() []Key { return keys(v.listers.Users, v.clusters.Users) }

// SessionKeys returns the keys of all Sessions.
func (v *Views) SessionKeys() []Key { return keys(v.listers.Sessions, v.clusters.Users) }

// MembershipKeys returns the keys of all Memberships.
func (v *Views) MembershipKeys() []Key { return keys(v.listers.Memberships, "") }

// BotKeys returns the keys of all Bots.
func (v *Views) BotKeys() []Key { return keys(v.listers.Bots, "") }

// CatalogEntryKeys returns the keys of all CatalogEntries.
func (v *Views) CatalogEntryKeys() []Key { return v.catalog.keys() }

// WorkspaceKeys returns the keys of all child Workspaces.
func (v *Views) WorkspaceKeys() (found []Key) {
	for ws := range v.listers.Workspaces.All() {
		if cluster := kcp.ClusterOf(ws); cluster != v.clusters.Orgs {
			found = append(found, Key{cluster, ws.Name})
		}
	}
	return found
}

// IndexKeys returns the keys of all Users, and of the UserMembershipIndexes that have no
// User any more. Both have the same name.
func (v *Views) IndexKeys() []Key {
	found := v.UserKeys()
	for i := range v.listers.Indexes.All() {
		if _, ok := v.listers.Users.Get(v.clusters.Users, i.Name); !ok {
			found = append(found, Key{v.clusters.Users, i.Name})
		}
	}
	return found
}

// keys returns the keys of a kind: of the objects in one logical cluster, or where that
// is empty of all.
func keys[T kcp.Object](lister Lister[T], cluster string) (found []Key) {
	for o := range lister.All() {
		if at := kcp.ClusterOf(o); cluster == "" || at == cluster {
			found = append(found, Key{at, o.GetName()})
		}
	}
	return found
}

// WorkspaceKeyOf returns the key of the child Workspace that a logical cluster belongs
// to; ok is false where it belongs to none.
func (v *Views) WorkspaceKeyOf(cluster string) (key Key, ok bool) {
	at := v.Cluster(cluster)
	if at.Kind != tenancy.ClusterWorkspace {
		return Key{}, false
	}
	return Key{v.topology.clusterOf(at.OrgUUID), at.WorkspaceUUID}, true
}

// IndexedMemberships returns where a User is by their Memberships. It leaves out a Membership in an
// Org or a Workspace that the views do not know yet.
func (v *Views) IndexedMemberships(user string) []tenancy.IndexedMembership {
	var places []tenancy.IndexedMembership
	firstAdmins := map[string]string{}
	for _, m := range v.MembershipsOf(user) {
		cluster := kcp.ClusterOf(m)
		org, ok := v.OrgByCluster(cluster)
		if !ok || org.Organization == nil || !m.DeletionTimestamp.IsZero() {
			continue
		}
		if _, ok := firstAdmins[cluster]; !ok {
			firstAdmins[cluster] = tenancy.FirstAdmin(org, func() []*v1alpha1.Membership { return v.MembershipsIn(cluster) })
		}
		p := tenancy.IndexedMembership{Org: org, Role: m.Spec.Role, FirstAdmin: firstAdmins[cluster]}
		if uuid := tenancy.WorkspaceUUID(m); uuid != "" {
			ws, ok := v.Workspace(org.UUID(), uuid)
			if !ok {
				continue
			}
			p.Workspace = &ws
		}
		places = append(places, p)
	}
	return places
}

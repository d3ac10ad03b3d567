package views

import (
	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/informer"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Change is one change of one object. Old is nil for an addition, New is nil for a
// removal. Both are shared and read only.
type Change[T kcp.Object] struct {
	Old, New T
	// Moved says what differs between Old and New.
	Moved Fields
}

// Object returns New, or Old where the object was removed.
func (c Change[T]) Object() T { return current(c.Old, c.New) }

// Cluster returns the logical cluster of the object.
func (c Change[T]) Cluster() string { return kcp.ClusterOf(c.Object()) }

// Any reports whether at least one of the fields moved.
func (c Change[T]) Any(fields Fields) bool { return c.Moved&fields != 0 }

// AnyBut reports whether a field moved that is not among fields.
func (c Change[T]) AnyBut(fields Fields) bool { return c.Moved&^fields != 0 }

// current returns the newer of the two objects of a change.
func current[T kcp.Object](old, new T) T {
	var none T
	if any(new) == any(none) {
		return old
	}
	return new
}

// kind is what the views do with the changes of one kind.
type kind[T kcp.Object] struct {
	// belongs is the logical cluster of all objects of the kind; empty where they may be
	// in any.
	belongs string
	// change changes the views; nil where objects are read from the informer alone.
	change func(cluster string, old, new T)
	// moved compares two versions of one object.
	moved       func(old, new T) Fields
	subscribers []func(Change[T])
	// refs returns what callers of Await name to be woken by a change of the object.
	refs func(cluster string, o T) []tenancy.Ref
}

func (k *kind[T]) subscribe(f func(Change[T])) { k.subscribers = append(k.subscribers, f) }

// handler returns the informer's handler: it changes the views, publishes the change,
// and wakes those who wait for it.
func (k *kind[T]) handler(w *waiters) informer.Handler[T] {
	return func(old, new T) {
		o := current(old, new)
		cluster := kcp.ClusterOf(o)
		if k.belongs != "" && k.belongs != cluster {
			return
		}
		if k.change != nil {
			k.change(cluster, old, new)
		}
		k.publish(old, new)
		w.touch(func() []tenancy.Ref { return k.refs(cluster, o) })
	}
}

func (k *kind[T]) publish(old, new T) {
	if len(k.subscribers) == 0 {
		return
	}
	c := Change[T]{Old: old, New: new}
	var none T
	switch {
	case any(old) == any(none):
		c.Moved = Added
	case any(new) == any(none):
		c.Moved = Removed
	case old.GetUID() != new.GetUID():
		c.Moved = Added | Removed
	default:
		c.Moved = k.moved(old, new)
	}
	for _, f := range k.subscribers {
		f(c)
	}
}

// kinds are all that the hub watches.
type kinds struct {
	users         kind[*v1alpha1.User]
	organizations kind[*v1alpha1.Organization]
	memberships   kind[*v1alpha1.Membership]
	indexes       kind[*v1alpha1.UserMembershipIndex]
	sessions      kind[*v1alpha1.Session]
	catalog       kind[*v1alpha1.CatalogEntry]

	orgWorkspaces, workspaces kind[*kcptenancyv1alpha1.Workspace]
	initializing, inactive    kind[*kcpcorev1alpha1.LogicalCluster]
	orgBindings, bindings     kind[*kcpapisv1alpha2.APIBinding]

	namespaces          kind[*corev1.Namespace]
	clusterRoles        kind[*rbacv1.ClusterRole]
	clusterRoleBindings kind[*rbacv1.ClusterRoleBinding]
	roles               kind[*rbacv1.Role]
	roleBindings        kind[*rbacv1.RoleBinding]

	bots            kind[*v1alpha1.Bot]
	serviceAccounts kind[*corev1.ServiceAccount]
	botSecrets      kind[*corev1.Secret]

	policies       kind[*admissionv1.ValidatingAdmissionPolicy]
	policyBindings kind[*admissionv1.ValidatingAdmissionPolicyBinding]
}

func newKinds(v *Views) kinds {
	return kinds{
		users:               kind[*v1alpha1.User]{belongs: v.clusters.Users, change: v.people.change, moved: userMoved, refs: v.userRefs},
		organizations:       kind[*v1alpha1.Organization]{belongs: v.clusters.Orgs, change: v.topology.organization, moved: organizationMoved, refs: v.organizationRefs},
		memberships:         kind[*v1alpha1.Membership]{change: v.memberships.membership, moved: membershipMoved, refs: v.membershipRefs},
		indexes:             kind[*v1alpha1.UserMembershipIndex]{belongs: v.clusters.Users, change: v.memberships.index, moved: indexMoved, refs: v.indexRefs},
		sessions:            kind[*v1alpha1.Session]{belongs: v.clusters.Users, change: v.sessions.change, moved: sessionMoved, refs: v.sessionRefs},
		catalog:             kind[*v1alpha1.CatalogEntry]{change: v.catalog.change, moved: catalogEntryMoved, refs: v.catalogRefs},
		orgWorkspaces:       kind[*kcptenancyv1alpha1.Workspace]{belongs: v.clusters.Orgs, change: v.workspace, moved: workspaceMoved, refs: v.workspaceRefs},
		workspaces:          kind[*kcptenancyv1alpha1.Workspace]{change: v.workspace, moved: workspaceMoved, refs: v.workspaceRefs},
		initializing:        kind[*kcpcorev1alpha1.LogicalCluster]{moved: logicalClusterMoved, refs: refsIn[*kcpcorev1alpha1.LogicalCluster](v)},
		inactive:            kind[*kcpcorev1alpha1.LogicalCluster]{moved: logicalClusterMoved, refs: refsIn[*kcpcorev1alpha1.LogicalCluster](v)},
		orgBindings:         kind[*kcpapisv1alpha2.APIBinding]{moved: apiBindingMoved, refs: refsIn[*kcpapisv1alpha2.APIBinding](v)},
		bindings:            kind[*kcpapisv1alpha2.APIBinding]{change: v.enabled.change, moved: apiBindingMoved, refs: refsIn[*kcpapisv1alpha2.APIBinding](v)},
		namespaces:          kind[*corev1.Namespace]{moved: namespaceMoved, refs: refsIn[*corev1.Namespace](v)},
		clusterRoles:        kind[*rbacv1.ClusterRole]{moved: clusterRoleMoved, refs: refsIn[*rbacv1.ClusterRole](v)},
		clusterRoleBindings: kind[*rbacv1.ClusterRoleBinding]{moved: clusterRoleBindingMoved, refs: refsIn[*rbacv1.ClusterRoleBinding](v)},
		roles:               kind[*rbacv1.Role]{moved: roleMoved, refs: refsIn[*rbacv1.Role](v)},
		roleBindings:        kind[*rbacv1.RoleBinding]{moved: roleBindingMoved, refs: refsIn[*rbacv1.RoleBinding](v)},
		bots:                kind[*v1alpha1.Bot]{change: v.bots.change, moved: botMoved, refs: v.botRefs},
		serviceAccounts:     kind[*corev1.ServiceAccount]{moved: serviceAccountMoved, refs: refsIn[*corev1.ServiceAccount](v)},
		botSecrets:          kind[*corev1.Secret]{moved: secretMoved, refs: refsIn[*corev1.Secret](v)},
		policies:            kind[*admissionv1.ValidatingAdmissionPolicy]{moved: policyMoved, refs: refsIn[*admissionv1.ValidatingAdmissionPolicy](v)},
		policyBindings:      kind[*admissionv1.ValidatingAdmissionPolicyBinding]{moved: policyBindingMoved, refs: refsIn[*admissionv1.ValidatingAdmissionPolicyBinding](v)},
	}
}

// OnUser subscribes to Users.
func (v *Views) OnUser(f func(Change[*v1alpha1.User])) { v.kinds.users.subscribe(f) }

// OnOrganization subscribes to Organizations.
func (v *Views) OnOrganization(f func(Change[*v1alpha1.Organization])) {
	v.kinds.organizations.subscribe(f)
}

// OnMembership subscribes to Memberships of both scopes.
func (v *Views) OnMembership(f func(Change[*v1alpha1.Membership])) {
	v.kinds.memberships.subscribe(f)
}

// OnIndex subscribes to UserMembershipIndexes.
func (v *Views) OnIndex(f func(Change[*v1alpha1.UserMembershipIndex])) {
	v.kinds.indexes.subscribe(f)
}

// OnSession subscribes to Sessions.
func (v *Views) OnSession(f func(Change[*v1alpha1.Session])) { v.kinds.sessions.subscribe(f) }

// OnCatalogEntry subscribes to CatalogEntries, the Global ones among them.
func (v *Views) OnCatalogEntry(f func(Change[*v1alpha1.CatalogEntry])) { v.kinds.catalog.subscribe(f) }

// OnOrgWorkspace subscribes to the kcp Workspaces of Organizations.
func (v *Views) OnOrgWorkspace(f func(Change[*kcptenancyv1alpha1.Workspace])) {
	v.kinds.orgWorkspaces.subscribe(f)
}

// OnWorkspace subscribes to child Workspaces.
func (v *Views) OnWorkspace(f func(Change[*kcptenancyv1alpha1.Workspace])) {
	v.kinds.workspaces.subscribe(f)
}

// OnInitializing subscribes to the logical clusters that have the hub's initializer.
func (v *Views) OnInitializing(f func(Change[*kcpcorev1alpha1.LogicalCluster])) {
	v.kinds.initializing.subscribe(f)
}

// OnInactive subscribes to the logical clusters that are deactivated in kcp. A cluster
// that is activated is Removed.
func (v *Views) OnInactive(f func(Change[*kcpcorev1alpha1.LogicalCluster])) {
	v.kinds.inactive.subscribe(f)
}

// OnOrgBinding subscribes to the APIBindings in the workspaces of Organizations.
func (v *Views) OnOrgBinding(f func(Change[*kcpapisv1alpha2.APIBinding])) {
	v.kinds.orgBindings.subscribe(f)
}

// OnBinding subscribes to the APIBindings in child Workspaces.
func (v *Views) OnBinding(f func(Change[*kcpapisv1alpha2.APIBinding])) {
	v.kinds.bindings.subscribe(f)
}

// OnNamespace subscribes to the Namespaces in child Workspaces.
func (v *Views) OnNamespace(f func(Change[*corev1.Namespace])) { v.kinds.namespaces.subscribe(f) }

// OnClusterRole subscribes to the ClusterRoles in child Workspaces.
func (v *Views) OnClusterRole(f func(Change[*rbacv1.ClusterRole])) {
	v.kinds.clusterRoles.subscribe(f)
}

// OnClusterRoleBinding subscribes to the hub's ClusterRoleBindings in child Workspaces.
func (v *Views) OnClusterRoleBinding(f func(Change[*rbacv1.ClusterRoleBinding])) {
	v.kinds.clusterRoleBindings.subscribe(f)
}

// OnRole subscribes to the Roles in child Workspaces.
func (v *Views) OnRole(f func(Change[*rbacv1.Role])) { v.kinds.roles.subscribe(f) }

// OnRoleBinding subscribes to the hub's RoleBindings in child Workspaces.
func (v *Views) OnRoleBinding(f func(Change[*rbacv1.RoleBinding])) {
	v.kinds.roleBindings.subscribe(f)
}

// OnBot subscribes to Bots.
func (v *Views) OnBot(f func(Change[*v1alpha1.Bot])) { v.kinds.bots.subscribe(f) }

// OnServiceAccount subscribes to the ServiceAccounts of Bots in child Workspaces.
func (v *Views) OnServiceAccount(f func(Change[*corev1.ServiceAccount])) {
	v.kinds.serviceAccounts.subscribe(f)
}

// OnBotSecret subscribes to the Secrets that tokens of Bots are bound to.
func (v *Views) OnBotSecret(f func(Change[*corev1.Secret])) { v.kinds.botSecrets.subscribe(f) }

// OnPolicy subscribes to the hub's ValidatingAdmissionPolicies in child Workspaces. The
// cache has a hash of the spec, which is in the metadata.
func (v *Views) OnPolicy(f func(Change[*admissionv1.ValidatingAdmissionPolicy])) {
	v.kinds.policies.subscribe(f)
}

// OnPolicyBinding subscribes to the bindings of these policies.
func (v *Views) OnPolicyBinding(f func(Change[*admissionv1.ValidatingAdmissionPolicyBinding])) {
	v.kinds.policyBindings.subscribe(f)
}

// listen gives every informer the handler of its kind.
func (v *Views) listen(in *Informers) {
	in.Users.OnChange(v.kinds.users.handler(&v.waiters))
	in.Organizations.OnChange(v.kinds.organizations.handler(&v.waiters))
	in.Memberships.OnChange(v.kinds.memberships.handler(&v.waiters))
	in.Indexes.OnChange(v.kinds.indexes.handler(&v.waiters))
	in.Sessions.OnChange(v.kinds.sessions.handler(&v.waiters))
	in.CatalogEntries.OnChange(v.kinds.catalog.handler(&v.waiters))
	in.Workspaces.OnChange(v.workspaceHandler())
	in.Initializing.OnChange(v.kinds.initializing.handler(&v.waiters))
	in.Inactive.OnChange(v.kinds.inactive.handler(&v.waiters))
	in.OrgBindings.OnChange(v.kinds.orgBindings.handler(&v.waiters))
	in.Bindings.OnChange(v.kinds.bindings.handler(&v.waiters))
	in.Namespaces.OnChange(v.kinds.namespaces.handler(&v.waiters))
	in.ClusterRoles.OnChange(v.kinds.clusterRoles.handler(&v.waiters))
	in.ClusterRoleBindings.OnChange(v.kinds.clusterRoleBindings.handler(&v.waiters))
	in.Roles.OnChange(v.kinds.roles.handler(&v.waiters))
	in.RoleBindings.OnChange(v.kinds.roleBindings.handler(&v.waiters))
	in.Bots.OnChange(v.kinds.bots.handler(&v.waiters))
	in.ServiceAccounts.OnChange(v.kinds.serviceAccounts.handler(&v.waiters))
	in.BotSecrets.OnChange(v.kinds.botSecrets.handler(&v.waiters))
	in.Policies.OnChange(v.kinds.policies.handler(&v.waiters))
	in.PolicyBindings.OnChange(v.kinds.policyBindings.handler(&v.waiters))
}

// workspaceHandler tells the Workspaces of Organizations from child Workspaces.
func (v *Views) workspaceHandler() informer.Handler[*kcptenancyv1alpha1.Workspace] {
	own, child := v.kinds.orgWorkspaces.handler(&v.waiters), v.kinds.workspaces.handler(&v.waiters)
	return func(old, new *kcptenancyv1alpha1.Workspace) {
		if kcp.ClusterOf(current(old, new)) == v.clusters.Orgs {
			own(old, new)
			return
		}
		child(old, new)
	}
}

package views

import (
	"slices"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
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

// Any tells whether at least one of the fields moved.
func (c Change[T]) Any(fields Fields) bool { return c.Moved&fields != 0 }

// AnyBut tells whether a field moved that is not among fields.
func (c Change[T]) AnyBut(fields Fields) bool { return c.Moved&^fields != 0 }

// current returns the newer of the two objects of a change.
func current[T kcp.Object](old, new T) T {
	var none T
	if any(new) == any(none) {
		return old
	}
	return new
}

// publisher passes the changes of one kind to its subscribers.
type publisher[T kcp.Object] struct {
	// moved compares two versions of one object.
	moved       func(old, new T) Fields
	subscribers []func(Change[T])
}

func (p *publisher[T]) subscribe(f func(Change[T])) { p.subscribers = append(p.subscribers, f) }

func (p *publisher[T]) publish(old, new T) {
	if len(p.subscribers) == 0 {
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
		c.Moved = p.moved(old, new)
	}
	for _, f := range p.subscribers {
		f(c)
	}
}

// publishers has one publisher for each kind.
type publishers struct {
	users         publisher[*v1alpha1.User]
	organizations publisher[*v1alpha1.Organization]
	memberships   publisher[*v1alpha1.Membership]
	indexes       publisher[*v1alpha1.UserMembershipIndex]

	orgWorkspaces, workspaces publisher[*kcptenancyv1alpha1.Workspace]
	initializing, inactive    publisher[*kcpcorev1alpha1.LogicalCluster]
	orgBindings, bindings     publisher[*kcpapisv1alpha2.APIBinding]

	namespaces          publisher[*corev1.Namespace]
	clusterRoles        publisher[*rbacv1.ClusterRole]
	clusterRoleBindings publisher[*rbacv1.ClusterRoleBinding]
}

func newPublishers() publishers {
	return publishers{
		users:               publisher[*v1alpha1.User]{moved: userMoved},
		organizations:       publisher[*v1alpha1.Organization]{moved: organizationMoved},
		memberships:         publisher[*v1alpha1.Membership]{moved: membershipMoved},
		indexes:             publisher[*v1alpha1.UserMembershipIndex]{moved: indexMoved},
		orgWorkspaces:       publisher[*kcptenancyv1alpha1.Workspace]{moved: workspaceMoved},
		workspaces:          publisher[*kcptenancyv1alpha1.Workspace]{moved: workspaceMoved},
		initializing:        publisher[*kcpcorev1alpha1.LogicalCluster]{moved: logicalClusterMoved},
		inactive:            publisher[*kcpcorev1alpha1.LogicalCluster]{moved: logicalClusterMoved},
		orgBindings:         publisher[*kcpapisv1alpha2.APIBinding]{moved: apiBindingMoved},
		bindings:            publisher[*kcpapisv1alpha2.APIBinding]{moved: apiBindingMoved},
		namespaces:          publisher[*corev1.Namespace]{moved: namespaceMoved},
		clusterRoles:        publisher[*rbacv1.ClusterRole]{moved: clusterRoleMoved},
		clusterRoleBindings: publisher[*rbacv1.ClusterRoleBinding]{moved: clusterRoleBindingMoved},
	}
}

// OnUser subscribes to Users.
func (v *Views) OnUser(f func(Change[*v1alpha1.User])) { v.publishers.users.subscribe(f) }

// OnOrganization subscribes to Organizations.
func (v *Views) OnOrganization(f func(Change[*v1alpha1.Organization])) {
	v.publishers.organizations.subscribe(f)
}

// OnMembership subscribes to Memberships of both scopes.
func (v *Views) OnMembership(f func(Change[*v1alpha1.Membership])) {
	v.publishers.memberships.subscribe(f)
}

// OnIndex subscribes to UserMembershipIndexes.
func (v *Views) OnIndex(f func(Change[*v1alpha1.UserMembershipIndex])) {
	v.publishers.indexes.subscribe(f)
}

// OnOrgWorkspace subscribes to the kcp Workspaces of Organizations.
func (v *Views) OnOrgWorkspace(f func(Change[*kcptenancyv1alpha1.Workspace])) {
	v.publishers.orgWorkspaces.subscribe(f)
}

// OnWorkspace subscribes to child Workspaces.
func (v *Views) OnWorkspace(f func(Change[*kcptenancyv1alpha1.Workspace])) {
	v.publishers.workspaces.subscribe(f)
}

// OnInitializing subscribes to the logical clusters that have the hub's initializer.
func (v *Views) OnInitializing(f func(Change[*kcpcorev1alpha1.LogicalCluster])) {
	v.publishers.initializing.subscribe(f)
}

// OnInactive subscribes to the logical clusters that are deactivated in kcp. A cluster
// that is activated is Removed.
func (v *Views) OnInactive(f func(Change[*kcpcorev1alpha1.LogicalCluster])) {
	v.publishers.inactive.subscribe(f)
}

// OnOrgBinding subscribes to the APIBindings in the workspaces of Organizations.
func (v *Views) OnOrgBinding(f func(Change[*kcpapisv1alpha2.APIBinding])) {
	v.publishers.orgBindings.subscribe(f)
}

// OnBinding subscribes to the APIBindings in child Workspaces.
func (v *Views) OnBinding(f func(Change[*kcpapisv1alpha2.APIBinding])) {
	v.publishers.bindings.subscribe(f)
}

// OnNamespace subscribes to the hub's Namespaces in child Workspaces.
func (v *Views) OnNamespace(f func(Change[*corev1.Namespace])) { v.publishers.namespaces.subscribe(f) }

// OnClusterRole subscribes to the ClusterRoles in child Workspaces.
func (v *Views) OnClusterRole(f func(Change[*rbacv1.ClusterRole])) {
	v.publishers.clusterRoles.subscribe(f)
}

// OnClusterRoleBinding subscribes to the hub's ClusterRoleBindings in child Workspaces.
func (v *Views) OnClusterRoleBinding(f func(Change[*rbacv1.ClusterRoleBinding])) {
	v.publishers.clusterRoleBindings.subscribe(f)
}

// listen has every informer change the views, then publish, then wake those who wait.
func (v *Views) listen(c Clusters, in *Informers) {
	in.Users.OnChange(changing(v, &v.publishers.users, v.people.change, c.Users))
	in.Organizations.OnChange(changing(v, &v.publishers.organizations, v.topology.organization, c.Orgs))
	in.Memberships.OnChange(changing(v, &v.publishers.memberships, v.memberships.membership))
	in.Indexes.OnChange(changing(v, &v.publishers.indexes, v.memberships.index, c.Users))
	in.Workspaces.OnChange(v.changingWorkspace())
	// No view holds these: they are read from the informers.
	in.Initializing.OnChange(changing(v, &v.publishers.initializing, nil))
	in.Inactive.OnChange(changing(v, &v.publishers.inactive, nil))
	in.OrgBindings.OnChange(changing(v, &v.publishers.orgBindings, nil))
	in.Bindings.OnChange(changing(v, &v.publishers.bindings, nil))
	in.Namespaces.OnChange(changing(v, &v.publishers.namespaces, nil))
	in.ClusterRoles.OnChange(changing(v, &v.publishers.clusterRoles, nil))
	in.ClusterRoleBindings.OnChange(changing(v, &v.publishers.clusterRoleBindings, nil))
}

// changing returns the informer's handler of one kind. change may be nil. An object
// from a logical cluster that is not in belong is ignored; without belong the kind may
// be in any.
func changing[T kcp.Object](v *Views, p *publisher[T], change func(cluster string, old, new T), belong ...string) kcp.Handler[T] {
	return func(old, new T) {
		cluster := kcp.ClusterOf(current(old, new))
		if len(belong) > 0 && !slices.Contains(belong, cluster) {
			return
		}
		if change != nil {
			change(cluster, old, new)
		}
		p.publish(old, new)
		v.changed.wake()
	}
}

// changingWorkspace is changing for Workspaces: those of Organizations and child
// Workspaces are published apart.
func (v *Views) changingWorkspace() kcp.Handler[*kcptenancyv1alpha1.Workspace] {
	own := changing(v, &v.publishers.orgWorkspaces, v.workspace)
	child := changing(v, &v.publishers.workspaces, v.workspace)
	return func(old, new *kcptenancyv1alpha1.Workspace) {
		if kcp.ClusterOf(current(old, new)) == v.clusters.Orgs {
			own(old, new)
			return
		}
		child(old, new)
	}
}

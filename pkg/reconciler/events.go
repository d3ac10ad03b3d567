package reconciler

import (
	"slices"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// Enqueue returns how a controller enqueues the keys of a change: ahead of others if the change ends
// a right, or may.
func Enqueue(c *controller.Controller, ends bool) func(controller.Key) {
	if ends {
		return c.EnqueueUrgent
	}
	return c.Enqueue
}

// RightsOfUser are the fields of a User that their rights follow from.
func RightsOfUser(u *v1alpha1.User) any {
	return []any{u.Spec.RBACIdentity, u.Spec.Registration, u.Status.DeletionRequestedAt}
}

// GroupsOfUser are the fields of a User that the parts of Memberships by groups follow from.
func GroupsOfUser(u *v1alpha1.User) any {
	return []any{u.Spec.Groups, u.Spec.Registration, u.Status.DeletionRequestedAt}
}

// Existence is for what follows from an object being there, or being deleted, alone.
func Existence[T any](T) any { return nil }

// OrgDeletion is the mark of a soft deletion.
func OrgDeletion(o *v1alpha1.Organization) any { return o.Status.DeletionRequestedAt }

// rightsInOrg are the fields of an Organization that the rights in its Workspaces follow from.
func rightsInOrg(o *v1alpha1.Organization) any {
	return []any{o.Spec.DefaultAccess, o.Status.DeletionRequestedAt}
}

// WorkspaceState is where a child Workspace is, whether kcp has made it, and whether it is soft-deleted.
func WorkspaceState(ws *kcptenancyv1alpha1.Workspace) any {
	return []any{ws.Spec.Cluster, ws.Status.Phase, ws.Annotations[v1alpha1.DeletionRequestedAtAnnotation]}
}

// RightsOfMembership are the fields of a Membership that rights follow from.
func RightsOfMembership(m *v1alpha1.Membership) any {
	return []any{m.Spec.Role, m.Spec.Roles, m.Spec.Sudo, m.Spec.ExpiresAt, m.Spec.Extra}
}

// RoleOfMembership is the role, and whether they are a manager, that a Membership gives, and for how long.
func RoleOfMembership(m *v1alpha1.Membership) any {
	return []any{m.Spec.Role, m.Spec.Manager, m.Spec.ExpiresAt, m.Spec.Extra}
}

// OnUserMoved calls f after a change of the fields of a User.
func (d Deps) OnUserMoved(of views.Fields[*v1alpha1.User], f func(name string)) {
	d.Views.Users.Follow(of, func(c views.Change[*v1alpha1.User]) { f(c.Object().Name) })
}

// OnOrgMoved calls f after a change of the fields of an Organization, and after its kcp Workspace
// moved to another logical cluster. It does not call f while the Organization has no logical cluster.
func (d Deps) OnOrgMoved(of views.Fields[*v1alpha1.Organization], f func(tenancy.Org)) {
	call := func(uuid string) {
		if org, ok := d.Views.Org(uuid); ok && org.ClusterID != "" {
			f(org)
		}
	}
	d.Views.Organizations.Follow(of, func(c views.Change[*v1alpha1.Organization]) { call(c.Object().Name) })
	d.Views.OrgWorkspaces.Follow(func(ws *kcptenancyv1alpha1.Workspace) any { return ws.Spec.Cluster }, func(c views.Change[*kcptenancyv1alpha1.Workspace]) {
		call(c.Object().Name)
	})
}

// OnPlaces calls f with an object of a kind after every change of it, after the deletion of its Organization was requested or
// withdrawn, and after the removal of the Workspace that it is for.
func OnPlaces[T kcp.Object](d Deps, kind *views.Kind[T], workspace func(T) string, f func(controller.Key)) {
	call := func(o T) { f(controller.Key{Cluster: kcp.ClusterOf(o), Name: o.GetName()}) }
	kind.OnChange(func(c views.Change[T]) {
		if !c.Removed() {
			call(c.Object())
		}
	})
	d.OnOrgMoved(OrgDeletion, func(org tenancy.Org) {
		for _, o := range kind.InCluster(org.ClusterID) {
			call(o)
		}
	})
	d.Views.ChildWorkspaces.OnChange(func(ws views.Change[*kcptenancyv1alpha1.Workspace]) {
		if !ws.Removed() {
			return
		}
		for _, o := range kind.InCluster(ws.Cluster()) {
			if workspace(o) == ws.Old.Name {
				call(o)
			}
		}
	})
}

// OnWorkspaceMoved calls f after a change of the fields of a child Workspace.
func (d Deps) OnWorkspaceMoved(of views.Fields[*kcptenancyv1alpha1.Workspace], f func(workspace controller.Key)) {
	d.Views.ChildWorkspaces.Follow(of, func(c views.Change[*kcptenancyv1alpha1.Workspace]) {
		f(controller.Key{Cluster: c.Cluster(), Name: c.Object().Name})
	})
}

// OnRights calls f with a child Workspace after every change that may concern the
// rights of people in it: those of OnGrants and of OnRules.
func (d Deps) OnRights(f func(workspace controller.Key)) {
	d.OnGrants(f)
	d.OnRules(f)
}

// OnGrants calls f with a child Workspace after every change of a Membership from which
// bindings in it are derived, and of such a binding.
func (d Deps) OnGrants(f func(workspace controller.Key)) {
	d.Views.Memberships.Follow(RightsOfMembership, func(c views.Change[*v1alpha1.Membership]) { d.workspacesOf(c.Object(), f) })
	d.Views.RoleBindings.OnChange(func(c views.Change[*rbacv1.RoleBinding]) { d.In(c.Cluster(), f) })
	d.Views.ClusterRoleBindings.OnChange(func(c views.Change[*rbacv1.ClusterRoleBinding]) { d.In(c.Cluster(), f) })
}

// OnGrantsEnded calls f with a child Workspace after every change of a Membership that may take rights in
// it away.
func (d Deps) OnGrantsEnded(f func(workspace controller.Key)) {
	d.Views.Memberships.OnChange(func(c views.Change[*v1alpha1.Membership]) {
		if c.Ends(RightsOfMembership) {
			d.workspacesOf(c.Object(), f)
		}
	})
}

// OnRules calls f with a child Workspace after every change of what decides about rights in
// it beside the Memberships: Users, the Organization, the hub's roles and those that a Membership
// names, and bound APIs.
func (d Deps) OnRules(f func(workspace controller.Key)) {
	d.OnOrgMoved(rightsInOrg, func(org tenancy.Org) { d.eachWorkspace(org, f) })
	d.OnUserMoved(RightsOfUser, func(name string) {
		for _, m := range d.Views.MembershipsOf(name) {
			if org, ok := d.Views.OrgByCluster(kcp.ClusterOf(m)); ok {
				d.eachWorkspace(org, f)
			}
		}
	})
	d.OnNamedRole(func(m *v1alpha1.Membership) { d.workspacesOf(m, f) })
	d.Views.Namespaces.OnChange(func(c views.Change[*corev1.Namespace]) {
		if c.Object().Name == tenancy.DefaultNamespace {
			d.In(c.Cluster(), f)
		}
	})
	d.Views.ClusterRoles.OnChange(func(c views.Change[*rbacv1.ClusterRole]) {
		if tenancy.ReservedRole(c.Object().Name) || tenancy.ManagedByHub(c.Object()) {
			d.In(c.Cluster(), f)
		}
	})
	d.Views.Bindings.OnChange(func(c views.Change[*kcpapisv1alpha2.APIBinding]) { d.In(c.Cluster(), f) })
}

// OnNamedRole calls f with each Membership of which a role in spec.roles, or its namespace,
// changed, or the admin role with which the hub compares it. It does not call f for a role or a
// namespace that no Membership names, because tenants write these at any rate.
func (d Deps) OnNamedRole(f func(m *v1alpha1.Membership)) {
	named := func(cluster string, changed func(v1alpha1.RoleRef) bool) {
		ws, _ := d.Views.WorkspaceKeyOf(cluster)
		for _, m := range d.Views.MembershipsAt(ws.Cluster, ws.Name) {
			if slices.ContainsFunc(m.Spec.Roles, changed) {
				f(m)
			}
		}
	}
	d.Views.ClusterRoles.OnChange(func(c views.Change[*rbacv1.ClusterRole]) {
		name := c.Object().Name
		named(c.Cluster(), func(r v1alpha1.RoleRef) bool { return r.Name == name || name == tenancy.ClusterRoleAdmin })
	})
	d.Views.Roles.OnChange(func(c views.Change[*rbacv1.Role]) {
		role := v1alpha1.RoleRef{Namespace: c.Object().Namespace, Name: c.Object().Name}
		named(c.Cluster(), func(r v1alpha1.RoleRef) bool { return r == role })
	})
	d.Views.Namespaces.OnChange(func(c views.Change[*corev1.Namespace]) {
		if c.Added() || c.Removed() || c.Terminating() {
			named(c.Cluster(), func(r v1alpha1.RoleRef) bool { return r.Namespace == c.Object().Name })
		}
	})
}

// workspacesOf calls f with the child Workspaces that a Membership gives rights in.
func (d Deps) workspacesOf(m *v1alpha1.Membership, f func(workspace controller.Key)) {
	cluster := kcp.ClusterOf(m)
	if workspace := tenancy.WorkspaceUUID(m); workspace != "" {
		f(controller.Key{Cluster: cluster, Name: workspace})
	} else if org, ok := d.Views.OrgByCluster(cluster); ok {
		d.eachWorkspace(org, f)
	}
}

// eachWorkspace calls f with the child Workspaces of an Organization.
func (d Deps) eachWorkspace(org tenancy.Org, f func(workspace controller.Key)) {
	for _, ws := range d.Views.Workspaces(org.UUID()) {
		f(controller.Key{Cluster: org.ClusterID, Name: ws.UUID})
	}
}

// In calls f with the child Workspace of a logical cluster, if it belongs to one, spares included.
func (d Deps) In(cluster string, f func(workspace controller.Key)) {
	key, ok := d.Views.WorkspaceKeyOf(cluster)
	if !ok {
		key, ok = d.Views.SpareKeyOf(cluster)
	}
	if ok {
		f(controller.Key(key))
	}
}

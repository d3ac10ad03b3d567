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

// userFields are all but those from which only the User's own controller derives something.
func userFields(u *v1alpha1.User) any {
	spec := u.Spec
	spec.OrgClaims, spec.OrgQuota = nil, 0
	return []any{views.Metadata(u), spec, u.Status.DeletionRequestedAt}
}

// orgFields are all but those from which only the Organization's own controller derives something.
func orgFields(o *v1alpha1.Organization) any {
	spec := o.Spec
	spec.WorkspaceClaims, spec.WorkspaceQuota, spec.MembershipChanges, spec.BotChanges = nil, 0, nil, nil
	return []any{views.Metadata(o), spec, o.Status.DeletionRequestedAt}
}

// workspaceFields have neither the hub's status of a Workspace nor the definitions of tenants in it.
func workspaceFields(ws *kcptenancyv1alpha1.Workspace) any {
	return []any{views.Metadata(ws, v1alpha1.StatusAnnotation, tenancy.CustomResourcesAnnotation, v1alpha1.BotClaimsAnnotation), ws.Spec, ws.Status.Phase}
}

func membershipFields(m *v1alpha1.Membership) any { return []any{views.Metadata(m), m.Spec} }

// OnUserMoved calls f after a change of a User from which other objects are derived.
func (d Deps) OnUserMoved(f func(name string)) {
	d.Views.Users.Follow(userFields, func(c views.Change[*v1alpha1.User]) { f(c.Object().Name) })
}

// OnOrgMoved calls f after a change of an Organization from which other objects are
// derived, and after its kcp Workspace moved to another logical cluster. It does not
// call f while the Organization has no logical cluster.
func (d Deps) OnOrgMoved(f func(tenancy.Org)) {
	call := func(uuid string) {
		if org, ok := d.Views.Org(uuid); ok && org.ClusterID != "" {
			f(org)
		}
	}
	d.Views.Organizations.Follow(orgFields, func(c views.Change[*v1alpha1.Organization]) { call(c.Object().Name) })
	d.Views.OrgWorkspaces.OnChange(func(c views.Change[*kcptenancyv1alpha1.Workspace]) {
		if c.Added() || c.Removed() || c.Old.Spec.Cluster != c.New.Spec.Cluster {
			call(c.Object().Name)
		}
	})
}

// OnWorkspaceMoved calls f after a change of a child Workspace from which other objects
// are derived.
func (d Deps) OnWorkspaceMoved(f func(workspace controller.Key)) {
	d.Views.ChildWorkspaces.Follow(workspaceFields, func(c views.Change[*kcptenancyv1alpha1.Workspace]) {
		f(controller.Key{Cluster: c.Cluster(), Name: c.Object().Name})
	})
}

// OnMembershipMoved calls f after a change of a Membership from which other objects are
// derived; none is from its status.
func (d Deps) OnMembershipMoved(f func(m *v1alpha1.Membership)) {
	d.Views.Memberships.Follow(membershipFields, func(c views.Change[*v1alpha1.Membership]) { f(c.Object()) })
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
	d.OnMembershipMoved(func(m *v1alpha1.Membership) { d.workspacesOf(m, f) })
	d.Views.RoleBindings.OnChange(func(c views.Change[*rbacv1.RoleBinding]) { d.in(c.Cluster(), f) })
	d.Views.ClusterRoleBindings.OnChange(func(c views.Change[*rbacv1.ClusterRoleBinding]) { d.in(c.Cluster(), f) })
}

// OnGrantsEnded calls f with a child Workspace after every change of a Membership that may take rights in
// it away.
func (d Deps) OnGrantsEnded(f func(workspace controller.Key)) {
	d.Views.Memberships.OnChange(func(c views.Change[*v1alpha1.Membership]) {
		if c.Ends(func(m *v1alpha1.Membership) any { return []any{m.Spec.Role, m.Spec.Roles, m.Spec.Sudo} }) {
			d.workspacesOf(c.Object(), f)
		}
	})
}

// OnRules calls f with a child Workspace after every change of what decides about rights in
// it beside the Memberships: Users, the Organization, the hub's roles and those that a Membership
// names, and bound APIs.
func (d Deps) OnRules(f func(workspace controller.Key)) {
	d.OnOrgMoved(func(org tenancy.Org) { d.eachWorkspace(org, f) })
	d.OnUserMoved(func(name string) {
		for _, m := range d.Views.MembershipsOf(name) {
			if org, ok := d.Views.OrgByCluster(kcp.ClusterOf(m)); ok {
				d.eachWorkspace(org, f)
			}
		}
	})
	d.OnNamedRole(func(m *v1alpha1.Membership) { d.workspacesOf(m, f) })
	d.Views.Namespaces.OnChange(func(c views.Change[*corev1.Namespace]) {
		if c.Object().Name == tenancy.DefaultNamespace {
			d.in(c.Cluster(), f)
		}
	})
	d.Views.ClusterRoles.OnChange(func(c views.Change[*rbacv1.ClusterRole]) {
		if tenancy.ReservedRole(c.Object().Name) {
			d.in(c.Cluster(), f)
		}
	})
	d.Views.Bindings.OnChange(func(c views.Change[*kcpapisv1alpha2.APIBinding]) { d.in(c.Cluster(), f) })
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

// in calls f with the child Workspace of a logical cluster, if it belongs to one.
func (d Deps) in(cluster string, f func(workspace controller.Key)) {
	if key, ok := d.Views.WorkspaceKeyOf(cluster); ok {
		f(controller.Key(key))
	}
}

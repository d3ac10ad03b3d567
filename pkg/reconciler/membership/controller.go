package membership

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// NewController returns the controller of Memberships.
func NewController(d reconciler.Deps) *controller.Controller {
	problem := func(cluster string, r v1alpha1.RoleRef) tenancy.RoleProblem {
		_, problem := d.Roles(cluster).Resolve(r)
		return problem
	}
	c := d.Controller(controller.Options{Name: "membership", All: reconciler.Keys(d.Views.Memberships.Keys)}, New(d.Views, d.Objects().Memberships, problem, d.Settings.Clock))
	enqueue := func(memberships ...*v1alpha1.Membership) {
		for _, m := range memberships {
			c.Enqueue(controller.Key{Cluster: kcp.ClusterOf(m), Name: m.Name})
		}
	}
	d.Views.Memberships.OnChange(func(m views.Change[*v1alpha1.Membership]) { enqueue(m.Object()) })
	d.OnUserMoved(func(name string) { enqueue(d.Views.MembershipsOf(name)...) })
	d.OnOrgMoved(func(org tenancy.Org) { enqueue(d.Views.MembershipsIn(org.ClusterID)...) })
	d.OnWorkspaceMoved(func(ws controller.Key) { enqueue(d.Views.MembershipsAt(ws.Cluster, ws.Name)...) })
	// The status shows which of spec.roles are bound, and the rules of the admin role
	// decide which can be.
	withRoles := func(cluster string) {
		ws, ok := d.Views.WorkspaceKeyOf(cluster)
		if !ok {
			return
		}
		for _, m := range d.Views.MembershipsAt(ws.Cluster, ws.Name) {
			if len(m.Spec.Roles) > 0 {
				enqueue(m)
			}
		}
	}
	d.Views.ClusterRoles.OnChange(func(r views.Change[*rbacv1.ClusterRole]) {
		if name := r.Object().Name; name == tenancy.ClusterRoleAdmin || !tenancy.ReservedRole(name) {
			withRoles(r.Cluster())
		}
	})
	d.Views.Roles.OnChange(func(r views.Change[*rbacv1.Role]) { withRoles(r.Cluster()) })
	d.Views.Namespaces.OnChange(func(n views.Change[*corev1.Namespace]) {
		if n.Added() || n.Removed() || n.Terminating() {
			withRoles(n.Cluster())
		}
	})
	of := func(cluster, user string) {
		ws, ok := d.Views.WorkspaceKeyOf(cluster)
		if !ok || user == "" {
			return
		}
		if m, ok := d.Views.Membership(ws.Cluster, tenancy.MembershipName(user, ws.Name)); ok && len(m.Spec.Roles) > 0 {
			enqueue(m)
		}
	}
	d.Views.ClusterRoleBindings.OnChange(func(b views.Change[*rbacv1.ClusterRoleBinding]) {
		for _, o := range []*rbacv1.ClusterRoleBinding{b.Old, b.New} {
			if o != nil {
				of(b.Cluster(), o.Labels[v1alpha1.UserLabel])
			}
		}
	})
	d.Views.RoleBindings.OnChange(func(b views.Change[*rbacv1.RoleBinding]) {
		for _, o := range []*rbacv1.RoleBinding{b.Old, b.New} {
			if o != nil {
				of(b.Cluster(), o.Labels[v1alpha1.UserLabel])
			}
		}
	})
	return c
}

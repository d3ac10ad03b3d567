package membership

import (
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
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
	d.Views.Memberships.OnChange(func(m views.Change[*v1alpha1.Membership]) {
		ends := m.Ends(reconciler.RightsOfMembership)
		reconciler.Enqueue(c, ends)(controller.Key{Cluster: m.Cluster(), Name: m.Object().Name})
	})
	d.OnUserMoved(reconciler.Existence, func(name string) { enqueue(d.Views.MembershipsOf(name)...) })
	d.OnOrgMoved(reconciler.OrgDeletion, func(org tenancy.Org) { enqueue(d.Views.MembershipsIn(org.ClusterID)...) })
	d.OnWorkspaceMoved(func(ws *kcptenancyv1alpha1.Workspace) any { return ws.Spec.Cluster }, func(ws controller.Key) {
		enqueue(d.Views.MembershipsAt(ws.Cluster, ws.Name)...)
	})
	// The status shows which of spec.roles are bound, and the rules of the admin role
	// decide which can be.
	d.OnNamedRole(func(m *v1alpha1.Membership) { enqueue(m) })
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

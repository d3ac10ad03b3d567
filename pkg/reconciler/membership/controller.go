package membership

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// NewController returns the controller of Memberships.
func NewController(d reconciler.Deps) *controller.Controller {
	c := d.Controller(controller.Options{Name: "membership", All: reconciler.Keys(d.Views.MembershipKeys)}, New(configOf(d)))
	enqueue := func(memberships ...*v1alpha1.Membership) {
		for _, m := range memberships {
			c.Enqueue(controller.Key{Cluster: kcp.ClusterOf(m), Name: m.Name})
		}
	}
	d.Views.OnMembership(func(m views.Change[*v1alpha1.Membership]) { enqueue(m.Object()) })
	d.OnUserMoved(func(name string) { enqueue(d.Views.MembershipsOf(name)...) })
	d.OnOrgMoved(func(org tenancy.Org) { enqueue(d.Views.MembershipsIn(org.ClusterID)...) })
	d.OnWorkspaceMoved(func(ws controller.Key) { enqueue(d.Views.MembershipsAt(ws.Cluster, ws.Name)...) })
	// The status shows which of spec.roles exist and are bound.
	d.Views.OnClusterRole(func(r views.Change[*rbacv1.ClusterRole]) {
		if ws, ok := d.Views.WorkspaceKeyOf(r.Cluster()); ok && !tenancy.ReservedRole(r.Object().Name) {
			for _, m := range d.Views.MembershipsAt(ws.Cluster, ws.Name) {
				if len(m.Spec.Roles) > 0 {
					enqueue(m)
				}
			}
		}
	})
	d.Views.OnClusterRoleBinding(func(b views.Change[*rbacv1.ClusterRoleBinding]) {
		ws, ok := d.Views.WorkspaceKeyOf(b.Cluster())
		if !ok {
			return
		}
		for _, of := range []*rbacv1.ClusterRoleBinding{b.Old, b.New} {
			if of == nil || of.Labels[v1alpha1.UserLabel] == "" {
				continue
			}
			if m, ok := d.Views.Membership(ws.Cluster, tenancy.MembershipName(of.Labels[v1alpha1.UserLabel], ws.Name)); ok && len(m.Spec.Roles) > 0 {
				enqueue(m)
			}
		}
	})
	return c
}

func configOf(d reconciler.Deps) Config {
	listers := d.Views.Listers()
	return Config{
		Clock: d.Settings.Clock,
		Get: func(key controller.Key) (*v1alpha1.Membership, bool) {
			if _, ok := d.Views.OrgByCluster(key.Cluster); !ok || d.OrgDeactivated(key.Cluster) {
				return nil, false
			}
			return listers.Memberships.Get(key.Cluster, key.Name)
		},
		User: d.Views.ByName,
		Cluster: func(orgCluster, workspace string) string {
			org, ok := d.Views.OrgByCluster(orgCluster)
			if !ok {
				return ""
			}
			ws, _ := d.Views.Workspace(org.UUID(), workspace)
			return ws.ClusterID
		},
		HasRole: func(cluster, name string) bool {
			_, ok := listers.ClusterRoles.Get(cluster, name)
			return ok
		},
		HasBinding: func(cluster, name string) bool {
			_, ok := listers.ClusterRoleBindings.Get(cluster, name)
			return ok
		},
		Patch: objects.Commit(d.Clients.Memberships),
	}
}

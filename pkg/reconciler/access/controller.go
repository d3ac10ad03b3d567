package access

import (
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// NewController returns the controller of the RBAC of people in child Workspaces.
func NewController(d reconciler.Deps, r *Reconciler) *controller.Controller {
	c := d.Controller(controller.Options{Name: "access", All: reconciler.Keys(d.Views.ChildWorkspaces.Keys)}, r.Reconcile)
	d.OnRights(c.Enqueue)
	d.OnGrantsEnded(c.EnqueueUrgent)
	d.OnWorkspaceMoved(reconciler.WorkspaceState, c.Enqueue)
	// While kcp does not let the hub deactivate a Workspace, its RBAC must go.
	d.Views.ChildWorkspaces.OnChange(func(ws views.Change[*kcptenancyv1alpha1.Workspace]) {
		if ws.Differs(func(ws *kcptenancyv1alpha1.Workspace) any { return deactivationForbidden(ws) }) {
			c.Enqueue(controller.Key{Cluster: ws.Cluster(), Name: ws.Object().Name})
		}
	})
	d.Views.Organizations.OnChange(func(o views.Change[*v1alpha1.Organization]) {
		if !o.Differs(func(o *v1alpha1.Organization) any { return tenancy.DeactivationForbidden(o.Status.Conditions) }) {
			return
		}
		for _, ws := range d.Views.Workspaces(o.New.Name) {
			if key, ok := d.Workspace(ws); ok {
				c.Enqueue(key)
			}
		}
	})
	return c
}

func deactivationForbidden(ws *kcptenancyv1alpha1.Workspace) bool {
	return tenancy.DeactivationForbidden(tenancy.WorkspaceOf("", ws).Status.Conditions)
}

// NewReconciler returns the reconciler that reads from the views and writes to kcp.
func NewReconciler(d reconciler.Deps) *Reconciler { return New(d.Views, d.Objects().RBAC, d.Roles) }

// Readiness answers from the cache whether the RBAC in kcp follows the Memberships.
type Readiness struct {
	reconciler *Reconciler
	views      *views.Views
}

// NewReadiness returns the Readiness of what r reconciles.
func NewReadiness(r *Reconciler, v *views.Views) Readiness { return Readiness{r, v} }

// Followed reports it for one person in a child Workspace of the Organization, or in all
// of them if workspace is empty.
func (f Readiness) Followed(orgUUID, workspace, user string) bool {
	return f.all(orgUUID, func(ws tenancy.Workspace, key controller.Key) bool {
		return workspace != "" && ws.UUID != workspace || f.reconciler.MissingOf(key, user) == 0
	})
}

// FollowedEverywhere reports it for one person in all Organizations.
func (f Readiness) FollowedEverywhere(user string) bool {
	for _, m := range f.views.MembershipsOf(user) {
		if org, ok := f.views.OrgByCluster(kcp.ClusterOf(m)); ok && !f.Followed(org.UUID(), "", user) {
			return false
		}
	}
	return true
}

// FollowedByAll reports it for every member of the Organization.
func (f Readiness) FollowedByAll(orgUUID string) bool {
	return f.all(orgUUID, func(_ tenancy.Workspace, key controller.Key) bool { return f.reconciler.Missing(key) == 0 })
}

// Behind returns the people for whom it does not in child Workspaces of the Organization, each with the UUIDs of these. It
// compares each Workspace once, however many people somebody wants to know it of.
func (f Readiness) Behind(orgUUID string) map[string][]string {
	behind := map[string][]string{}
	f.all(orgUUID, func(ws tenancy.Workspace, key controller.Key) bool {
		for user := range f.reconciler.MissingFor(key) {
			behind[user] = append(behind[user], ws.UUID)
		}
		return true
	})
	return behind
}

// all reports whether is holds for every child Workspace of the Organization that is not
// deleted.
func (f Readiness) all(orgUUID string, is func(tenancy.Workspace, controller.Key) bool) bool {
	org, ok := f.views.Org(orgUUID)
	if !ok {
		return true
	}
	for _, ws := range f.views.Workspaces(orgUUID) {
		if !ws.Deleted() && !is(ws, controller.Key{Cluster: org.ClusterID, Name: ws.UUID}) {
			return false
		}
	}
	return true
}

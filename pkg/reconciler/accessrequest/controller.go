package accessrequest

import (
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// NewController returns the controller of AccessRequests.
func NewController(d reconciler.Deps) *controller.Controller {
	stored := d.Objects()
	c := d.Controller(controller.Options{Name: "accessrequest", All: reconciler.Keys(d.Views.AccessRequests.Keys)}, Requests{
		Clock: d.Settings.Clock, Requests: stored.Requests.Repository, Cached: stored.Workspaces.Get, Exists: stored.Workspaces.Exists,
		Deactivated: d.OrgDeactivated,
	}.Reconcile)
	enqueue := func(all ...*v1alpha1.AccessRequest) {
		for _, r := range all {
			c.Enqueue(controller.Key{Cluster: kcp.ClusterOf(r), Name: r.Name})
		}
	}
	d.Views.AccessRequests.OnChange(func(r views.Change[*v1alpha1.AccessRequest]) {
		if r.New != nil {
			enqueue(r.New)
		}
	})
	d.OnOrgMoved(reconciler.OrgDeletion, func(org tenancy.Org) { enqueue(d.Views.AccessRequestsIn(org.ClusterID)...) })
	d.Views.ChildWorkspaces.OnChange(func(ws views.Change[*kcptenancyv1alpha1.Workspace]) {
		if !ws.Removed() {
			return
		}
		for _, r := range d.Views.AccessRequestsIn(ws.Cluster()) {
			if r.Spec.WorkspaceRef.Name == ws.Old.Name {
				enqueue(r)
			}
		}
	})
	return c
}

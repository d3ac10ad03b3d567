package accessrequest

import (
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
)

// NewController returns the controller of AccessRequests.
func NewController(d reconciler.Deps) *controller.Controller {
	stored := d.Objects()
	c := d.Controller(controller.Options{Name: "accessrequest", All: reconciler.Keys(d.Views.AccessRequests.Keys)}, Requests{
		Clock: d.Settings.Clock, Requests: stored.Requests.Repository, Cached: stored.Workspaces.Get, Exists: stored.Workspaces.Exists,
		Deactivated: d.OrgDeactivated,
	}.Reconcile)
	workspace := func(r *v1alpha1.AccessRequest) string { return r.Spec.WorkspaceRef.Name }
	reconciler.OnPlaces(d, d.Views.AccessRequests, d.Views.AccessRequestsIn, workspace, c.Enqueue)
	return c
}

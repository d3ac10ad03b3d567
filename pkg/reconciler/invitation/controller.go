package invitation

import (
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// NewController returns the controller of Invitations.
func NewController(d reconciler.Deps) *controller.Controller {
	stored := d.Objects()
	c := d.Controller(controller.Options{Name: "invitation", All: reconciler.Keys(d.Views.Invitations.Keys)}, Invitations{
		Clock: d.Settings.Clock, Invitations: stored.Invitations.Repository, Cached: stored.Workspaces.Get, Exists: stored.Workspaces.Exists,
		Deactivated: d.OrgDeactivated,
	}.Reconcile)
	enqueue := func(in ...*v1alpha1.Invitation) {
		for _, i := range in {
			c.Enqueue(controller.Key{Cluster: kcp.ClusterOf(i), Name: i.Name})
		}
	}
	d.Views.Invitations.OnChange(func(i views.Change[*v1alpha1.Invitation]) {
		if i.New != nil {
			enqueue(i.New)
		}
	})
	d.OnOrgMoved(reconciler.OrgDeletion, func(org tenancy.Org) { enqueue(d.Views.InvitationsIn(org.ClusterID)...) })
	d.Views.ChildWorkspaces.OnChange(func(ws views.Change[*kcptenancyv1alpha1.Workspace]) {
		if !ws.Removed() {
			return
		}
		for _, i := range d.Views.InvitationsIn(ws.Cluster()) {
			if tenancy.InvitedWorkspace(i.Spec) == ws.Old.Name {
				enqueue(i)
			}
		}
	})
	return c
}

package invitation

import (
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// NewController returns the controller of Invitations.
func NewController(d reconciler.Deps) *controller.Controller {
	stored := d.Objects()
	c := d.Controller(controller.Options{Name: "invitation", All: reconciler.Keys(d.Views.Invitations.Keys)}, Invitations{
		Clock: d.Settings.Clock, Invitations: stored.Invitations.Repository, Cached: stored.Workspaces.Get, Exists: stored.Workspaces.Exists,
		Deactivated: d.OrgDeactivated,
	}.Reconcile)
	workspace := func(i *v1alpha1.Invitation) string { return tenancy.InvitedWorkspace(i.Spec) }
	reconciler.OnPlaces(d, d.Views.Invitations, d.Views.InvitationsIn, workspace, c.Enqueue)
	return c
}

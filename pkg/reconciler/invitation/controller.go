package invitation

import (
	"time"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// NewController returns the controller of Invitations.
func NewController(d reconciler.Deps) *controller.Controller {
	return Invitations(d.Objects().Invitations).Controller(d, "invitation", d.Views.Invitations)
}

// Invitations says when Invitations expire.
func Invitations(invitations objects.Invitations) reconciler.Ending[*v1alpha1.Invitation] {
	return reconciler.Ending[*v1alpha1.Invitation]{
		Objects: invitations.Repository, At: at,
		Workspace: func(i *v1alpha1.Invitation) string { return tenancy.InvitedWorkspace(i.Spec) },
	}
}

func at(i *v1alpha1.Invitation, now time.Time) (status any, again, removed time.Time) {
	expires, removed := i.Spec.ExpiresAt.Time, i.Spec.ExpiresAt.Add(tenancy.InvitationsKept)
	switch {
	case now.Before(expires):
		return nil, expires, removed
	case tenancy.InvitationStateAt(i, now) != i.Status.State:
		s := i.Status
		s.State = v1alpha1.InvitationExpired
		return s, removed, removed
	}
	return nil, removed, removed
}

package accessrequest

import (
	"time"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// NewController returns the controller of AccessRequests.
func NewController(d reconciler.Deps) *controller.Controller {
	return Requests(d.Objects().Requests).Controller(d, "accessrequest", d.Views.AccessRequests)
}

// Requests says when AccessRequests lapse and end.
func Requests(requests objects.Requests) reconciler.Ending[*v1alpha1.AccessRequest] {
	return reconciler.Ending[*v1alpha1.AccessRequest]{
		Objects: requests.Repository, At: at,
		Workspace: func(r *v1alpha1.AccessRequest) string { return r.Spec.WorkspaceRef.Name },
	}
}

func at(r *v1alpha1.AccessRequest, now time.Time) (status any, again, removed time.Time) {
	removed = r.CreationTimestamp.Add(tenancy.RequestsKept)
	if state := tenancy.RequestStateAt(r, now); state != r.Status.State && state != v1alpha1.RequestOpen {
		s := r.Status
		s.State = state
		return s, removed, removed
	}
	if end := tenancy.RequestEnd(r); end != nil {
		return nil, *end, removed
	}
	return nil, removed, removed
}

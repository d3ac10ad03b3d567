package organization

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// binding keeps the bindings of an Org's own workspace.
//
// kcp removes the objects of an API together with its binding. They do not come back:
// of the Memberships there is then the first admin's again and no other, and the
// Workspaces, with what was in them, are lost.
type binding struct {
	place    place
	bindings tenancy.Bindings
}

func (*binding) Condition() string { return v1alpha1.ConditionWatched }

func (s *binding) Reconcile(ctx context.Context, org *v1alpha1.Organization) (controller.Result, error) {
	cluster, ok := s.place(org.Name)
	if !ok {
		return controller.Result{}, nil
	}
	waiting, after, err := s.bindings.Keep(ctx, cluster, meta.FindStatusCondition(org.Status.Conditions, v1alpha1.ConditionWatched), controller.Forced(ctx))
	return controller.Result{Message: waiting, RequeueAfter: after, Stop: waiting != "" || err != nil}, err
}

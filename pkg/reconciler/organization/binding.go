package organization

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// binding keeps the APIBindings in an Organization's workspace.
//
// kcp removes the objects of an API together with its binding. They cannot be restored:
// afterwards the Organization has the Membership of its first admin and no other, and
// its child Workspaces are lost with their content.
type binding struct {
	cluster  clusterFunc
	bindings tenancy.Bindings
}

func (*binding) Condition() string { return v1alpha1.ConditionWatched }

func (s *binding) Reconcile(ctx context.Context, org *v1alpha1.Organization) (controller.Result, error) {
	cluster, ok := s.cluster(org.Name)
	if !ok {
		return controller.Result{}, nil
	}
	message, after, err := s.bindings.Keep(ctx, cluster, meta.FindStatusCondition(org.Status.Conditions, v1alpha1.ConditionWatched), controller.Forced(ctx))
	return controller.Result{Message: message, RequeueAfter: after, Stop: message != "" || err != nil}, err
}

package organization

import (
	"context"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
)

// initialized tells kcp that the hub's part is there and waits until kcp says
// that the Workspace is ready.
type initialized struct {
	workspace func(org string) (*kcptenancyv1alpha1.Workspace, bool)
	waiting   func(org string) (cluster string, ok bool)
	// remove takes the hub's initializer off the Org's logical cluster.
	remove func(ctx context.Context, org, cluster string) error
}

func (*initialized) Condition() string { return v1alpha1.ConditionWorkspaceReady }

func (s *initialized) Reconcile(ctx context.Context, org *v1alpha1.Organization) (controller.Result, error) {
	if ws, ok := s.workspace(org.Name); ok && ws.Status.Phase == kcpcorev1alpha1.LogicalClusterPhaseReady {
		return controller.Result{}, nil
	}
	waiting := controller.Result{Message: "kcp is finishing the organization's workspace", Stop: true}
	cluster, ok := s.waiting(org.Name)
	if !ok {
		return waiting, nil
	}
	return waiting, s.remove(ctx, org.Name, cluster)
}

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
	workspace   func(org string) (*kcptenancyv1alpha1.Workspace, bool)
	initializer string
	remove      func(ctx context.Context, cluster string) error
}

func (*initialized) Condition() string { return v1alpha1.ConditionWorkspaceReady }

func (s *initialized) Reconcile(ctx context.Context, org *v1alpha1.Organization) (controller.Outcome, error) {
	waiting := controller.Outcome{Waiting: "kcp is finishing the organization's workspace", Stop: true}
	ws, ok := s.workspace(org.Name)
	if !ok {
		return waiting, nil
	}
	if ws.Status.Phase == kcpcorev1alpha1.LogicalClusterPhaseReady {
		return controller.Outcome{}, nil
	}
	if !bound(ws, s.initializer) {
		return waiting, nil
	}
	return waiting, s.remove(ctx, ws.Spec.Cluster)
}

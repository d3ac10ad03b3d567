package organization

import (
	"context"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
)

// initialized removes the hub's initializer from the Organization's logical cluster and
// waits until kcp reports the Workspace Ready.
type initialized struct {
	workspace    func(org string) (*kcptenancyv1alpha1.Workspace, bool)
	initializing func(org string) (cluster string, ok bool)
	initialize   func(ctx context.Context, org, cluster string) error
}

func (*initialized) Condition() string { return v1alpha1.ConditionWorkspaceReady }

func (s *initialized) Reconcile(ctx context.Context, org *v1alpha1.Organization) (controller.Result, error) {
	if ws, ok := s.workspace(org.Name); ok && ws.Status.Phase == kcpcorev1alpha1.LogicalClusterPhaseReady {
		return controller.Result{}, nil
	}
	waiting := controller.Result{Message: "kcp is finishing the organization's workspace", Stop: true}
	cluster, ok := s.initializing(org.Name)
	if !ok {
		return waiting, nil
	}
	return waiting, s.initialize(ctx, org.Name, cluster)
}

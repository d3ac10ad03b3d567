package organization

import (
	"context"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
)

// initialized removes the hub's initializer from the Organization's logical cluster and
// waits until kcp reports the Workspace Ready.
type initialized struct {
	workspaces  workspaces
	initializer Initializer
}

func (*initialized) Condition() string { return v1alpha1.ConditionWorkspaceReady }

func (s *initialized) Reconcile(ctx context.Context, org *v1alpha1.Organization) (controller.Result, error) {
	if ws, ok := s.workspaces.of(org.Name); ok && ws.Status.Phase == kcpcorev1alpha1.LogicalClusterPhaseReady {
		return controller.Result{}, nil
	}
	waiting := controller.Result{Message: "kcp is finishing the organization's workspace", Stop: true}
	cluster, ok := s.initializer.InitializingCluster(org.Name)
	if !ok {
		return waiting, nil
	}
	return waiting, s.initializer.Initialize(ctx, org.Name, cluster)
}

package organization

import (
	"context"
	"slices"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// workspace makes the Org's kcp Workspace and waits until only the hub's own
// initializer keeps it from being ready: the APIs are bound by then.
type workspace struct {
	tree        tenancy.Tree
	initializer string
	get         func(org string) (*kcptenancyv1alpha1.Workspace, bool)
	create      func(ctx context.Context, ws *kcptenancyv1alpha1.Workspace) error
}

func (*workspace) Condition() string { return v1alpha1.ConditionWorkspaceBound }

func (s *workspace) Reconcile(ctx context.Context, org *v1alpha1.Organization) (controller.Outcome, error) {
	org.Status.WorkspacePath = s.tree.Org(org.Name)
	ws, ok := s.get(org.Name)
	if !ok {
		if !org.DeletionTimestamp.IsZero() {
			return controller.Outcome{Waiting: "the organization is being deleted", Stop: true}, nil
		}
		ws = &kcptenancyv1alpha1.Workspace{}
		ws.Name = org.Name
		ws.Spec.Type = &kcptenancyv1alpha1.WorkspaceTypeReference{Name: tenancy.TypeOrganization, Path: s.tree.Root()}
		if err := s.create(ctx, ws); err != nil {
			return controller.Outcome{}, err
		}
	}
	if !bound(ws, s.initializer) {
		return controller.Outcome{Waiting: "kcp is making the organization's workspace", Stop: true}, nil
	}
	return controller.Outcome{}, nil
}

// bound tells whether kcp has done its own part of making a Workspace.
func bound(ws *kcptenancyv1alpha1.Workspace, initializer string) bool {
	switch ws.Status.Phase {
	case kcpcorev1alpha1.LogicalClusterPhaseReady:
		return true
	case kcpcorev1alpha1.LogicalClusterPhaseInitializing:
		return slices.Equal(ws.Status.Initializers, []kcpcorev1alpha1.LogicalClusterInitializer{kcpcorev1alpha1.LogicalClusterInitializer(initializer)})
	}
	return false
}

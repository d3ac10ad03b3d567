package organization

import (
	"context"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// workspace makes the Org's kcp Workspace and waits until kcp has bound the APIs
// in it. It asks kcp for the Org before: the Workspace of one that was purged meanwhile
// nobody would remove again.
type workspace struct {
	tree   tenancy.Tree
	get    func(org string) (*kcptenancyv1alpha1.Workspace, bool)
	place  place
	now    now
	create func(ctx context.Context, ws *kcptenancyv1alpha1.Workspace) error
}

func (*workspace) Condition() string { return v1alpha1.ConditionWorkspaceBound }

func (s *workspace) Reconcile(ctx context.Context, org *v1alpha1.Organization) (controller.Result, error) {
	org.Status.WorkspacePath = s.tree.Org(org.Name)
	own, ok := s.get(org.Name)
	if ok && !own.DeletionTimestamp.IsZero() {
		return controller.Result{Message: "somebody deleted the organization's workspace by hand; what was in it is lost, and it is made anew when kcp has removed it", Stop: true}, nil
	}
	if !ok {
		if !org.DeletionTimestamp.IsZero() {
			return controller.Result{Message: "the organization is being deleted", Stop: true}, nil
		}
		if _, err := s.now(ctx, org); err != nil {
			return controller.Result{}, err
		}
		ws := &kcptenancyv1alpha1.Workspace{}
		ws.Name = org.Name
		ws.Spec.Type = &kcptenancyv1alpha1.WorkspaceTypeReference{Name: tenancy.TypeOrganization, Path: s.tree.Root()}
		if err := s.create(ctx, ws); err != nil {
			return controller.Result{}, err
		}
	}
	if _, ok := s.place(org.Name); !ok {
		return controller.Result{Message: "kcp is making the organization's workspace", Stop: true}, nil
	}
	return controller.Result{}, nil
}

// place is the logical cluster of an Org whose APIs are bound: it is ready, or
// waits for nothing but the hub.
type place func(org string) (cluster string, ok bool)

// where finds the place of an Org: its Workspace says so when it is ready, and
// before that the logical cluster itself, which kcp's Workspace follows only now
// and then.
func where(get func(org string) (*kcptenancyv1alpha1.Workspace, bool), waiting func(org string) (string, bool)) place {
	return func(org string) (string, bool) {
		if ws, ok := get(org); ok && ws.Status.Phase == kcpcorev1alpha1.LogicalClusterPhaseReady {
			return ws.Spec.Cluster, true
		}
		return waiting(org)
	}
}

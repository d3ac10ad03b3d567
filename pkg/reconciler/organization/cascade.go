package organization

import (
	"context"
	"fmt"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
)

// cascade removes what is in an Org that is being removed, children before parents:
// Workspaces, then Memberships, then the Org's own kcp Workspace, and then it lets
// go of the Organization. It looks at kcp itself and can be stopped anywhere.
type cascade struct {
	orgs string
	// own reads the Org's kcp Workspace.
	own func(ctx context.Context, org string) (*kcptenancyv1alpha1.Workspace, bool, error)
	// open lets the hub write to the Org's logical cluster again, and kcp clean it up.
	open             func(ctx context.Context, cluster string) error
	workspaces       func(ctx context.Context, cluster string) ([]kcptenancyv1alpha1.Workspace, error)
	memberships      func(ctx context.Context, cluster string) ([]v1alpha1.Membership, error)
	removeWorkspace  func(ctx context.Context, cluster string, ws *kcptenancyv1alpha1.Workspace) error
	removeMembership func(ctx context.Context, cluster string, m *v1alpha1.Membership) error
	// purged tells of an Org that is gone, with what was in it; told is of which.
	purged func(ctx context.Context, org *v1alpha1.Organization, counts map[string]int)
	told   controller.Once
}

func (s *cascade) reconcile(ctx context.Context, org *v1alpha1.Organization) (controller.Result, error) {
	if !controller.HasFinalizer(org) {
		return controller.Result{Stop: true}, nil
	}
	own, ok, err := s.own(ctx, org.Name)
	if err != nil {
		return controller.Result{}, err
	}
	if ok && own.DeletionTimestamp.IsZero() && own.Spec.Cluster != "" {
		waiting, err := s.empty(ctx, org, own.Spec.Cluster)
		if err != nil || waiting != "" {
			return controller.Result{Message: waiting, Stop: true}, err
		}
	}
	if ok {
		if own.DeletionTimestamp.IsZero() {
			err = s.removeWorkspace(ctx, s.orgs, own)
		}
		return controller.Result{Message: "kcp is removing the organization's workspace", Stop: true}, err
	}
	counts, _ := controller.Recorded(org)
	s.told.Do(org.UID, func() { s.purged(ctx, org, counts) })
	controller.RemoveFinalizer(org)
	return controller.Result{Message: "all of it is removed", Stop: true}, nil
}

// empty removes what is in the Org's workspace and says what is left.
func (s *cascade) empty(ctx context.Context, org *v1alpha1.Organization, cluster string) (waiting string, err error) {
	if err := s.open(ctx, cluster); err != nil {
		return "", err
	}
	workspaces, err := s.workspaces(ctx, cluster)
	if err != nil {
		return "", err
	}
	memberships, err := s.memberships(ctx, cluster)
	if err != nil {
		return "", err
	}
	if _, ok := controller.Recorded(org); !ok {
		return "what is in it is being removed", controller.Record(org, map[string]int{"workspaces": len(workspaces), "memberships": len(memberships)})
	}
	for i := range workspaces {
		if workspaces[i].DeletionTimestamp.IsZero() {
			if err := s.removeWorkspace(ctx, cluster, &workspaces[i]); err != nil {
				return "", err
			}
		}
	}
	if len(workspaces) > 0 {
		return fmt.Sprintf("%d workspaces are being removed", len(workspaces)), nil
	}
	for i := range memberships {
		if err := s.removeMembership(ctx, cluster, &memberships[i]); err != nil {
			return "", err
		}
	}
	return "", nil
}

package organization

import (
	"context"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// claims creates the child Workspaces that are claimed in the Organization (O-6), and
// removes the claims of Workspaces that no longer exist.
type claims struct {
	cluster    clusterFunc
	children   func(org string) []tenancy.Workspace
	orgs       organizations
	workspaces objects.Workspaces
}

func (*claims) Condition() string { return v1alpha1.ConditionClaimsHandled }

func (s *claims) Reconcile(ctx context.Context, org *v1alpha1.Organization) (controller.Result, error) {
	cluster, ok := s.cluster(org.Name)
	if !ok || org.Status.DeletionRequestedAt != nil || !org.DeletionTimestamp.IsZero() {
		return controller.Result{}, nil
	}
	var existing []string
	for _, ws := range s.children(org.Name) {
		existing = append(existing, ws.UUID)
	}
	var err error
	org.Spec.WorkspaceClaims, err = tenancy.SettleClaims(org.Spec.WorkspaceClaims, existing, tenancy.Claimed{
		Claims: func() ([]v1alpha1.Claim, error) {
			now, err := s.orgs.now(ctx, org.Name)
			if err != nil {
				return nil, err
			}
			return now.Spec.WorkspaceClaims, nil
		},
		Make: func(c v1alpha1.Claim) error {
			return s.workspaces.CreateChild(ctx, cluster, tenancy.ClaimedWorkspace(org.Name, c))
		},
		Exists: func(uuid string) (bool, error) { return s.workspaces.Exists(ctx, cluster, uuid) },
	})
	return controller.Result{}, err
}

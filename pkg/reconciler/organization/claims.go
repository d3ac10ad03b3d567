package organization

import (
	"context"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// claims makes the Workspaces that were claimed in the Org (O-6) and gives back
// the claims of those that are gone.
type claims struct {
	place    place
	existing func(org string) []string
	read     func(ctx context.Context, org string) (*v1alpha1.Organization, error)
	create   func(ctx context.Context, cluster string, w tenancy.Workspace) error
	exists   func(ctx context.Context, cluster, workspace string) (bool, error)
}

func (*claims) Condition() string { return v1alpha1.ConditionClaimsHandled }

func (s *claims) Reconcile(ctx context.Context, org *v1alpha1.Organization) (controller.Result, error) {
	cluster, ok := s.place(org.Name)
	if !ok || org.Status.DeletionRequestedAt != nil || !org.DeletionTimestamp.IsZero() {
		return controller.Result{}, nil
	}
	var err error
	org.Spec.WorkspaceClaims, err = tenancy.SettleClaims(org.Spec.WorkspaceClaims, s.existing(org.Name), tenancy.Claimed{
		Claims: func() ([]v1alpha1.Claim, error) {
			now, err := s.read(ctx, org.Name)
			if err != nil {
				return nil, err
			}
			return now.Spec.WorkspaceClaims, nil
		},
		Make:   func(c v1alpha1.Claim) error { return s.create(ctx, cluster, tenancy.ClaimedWorkspace(org.Name, c)) },
		Exists: func(uuid string) (bool, error) { return s.exists(ctx, cluster, uuid) },
	})
	return controller.Result{}, err
}

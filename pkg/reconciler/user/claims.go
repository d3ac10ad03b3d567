package user

import (
	"context"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// claims creates the Organizations that the User claimed, and removes the claims of
// Organizations that no longer exist.
type claims struct {
	existing func(user string) []string
	read     func(ctx context.Context, user string) (*v1alpha1.User, error)
	create   func(ctx context.Context, o *v1alpha1.Organization) error
	exists   func(ctx context.Context, uuid string) (bool, error)
}

func (*claims) Condition() string { return v1alpha1.ConditionClaimsHandled }

func (s *claims) Reconcile(ctx context.Context, u *v1alpha1.User) (controller.Result, error) {
	var err error
	u.Spec.OrgClaims, err = tenancy.SettleClaims(u.Spec.OrgClaims, s.existing(u.Name), tenancy.Claimed{
		Claims: func() ([]v1alpha1.Claim, error) {
			now, err := s.read(ctx, u.Name)
			if err != nil {
				return nil, err
			}
			return now.Spec.OrgClaims, nil
		},
		Make:   func(c v1alpha1.Claim) error { return s.create(ctx, tenancy.ClaimedOrg(c)) },
		Exists: func(uuid string) (bool, error) { return s.exists(ctx, uuid) },
	})
	return controller.Result{}, err
}

package organization

import (
	"context"
	"slices"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// invitations carries out spec.invitationChanges. It can be interrupted anywhere: a change that was
// carried out is carried out again without effect.
type invitations struct {
	cluster clusterFunc
	// current reads the Organization from kcp itself.
	current current
	change  func(ctx context.Context, cluster string, c v1alpha1.InvitationChange) error
}

func (*invitations) Condition() string { return v1alpha1.ConditionInvitationsChanged }

func (s *invitations) Reconcile(ctx context.Context, org *v1alpha1.Organization) (controller.Result, error) {
	changes := org.Spec.InvitationChanges
	if len(changes) == 0 {
		return controller.Result{}, nil
	}
	cluster, ok := s.cluster(org.Name)
	if !ok {
		return controller.Result{Message: "invitations are made once the organization's workspace exists"}, nil
	}
	// A cache that is behind can show a change that was carried out, and an Invitation that was removed since.
	now, err := s.current(ctx, org)
	if err != nil {
		return controller.Result{}, err
	}
	var failed error
	org.Spec.InvitationChanges = nil
	for _, c := range changes {
		if !slices.ContainsFunc(now.Spec.InvitationChanges, func(o v1alpha1.InvitationChange) bool { return tenancy.SameInvitationChange(o, c) }) {
			continue
		}
		if err := s.change(ctx, cluster, c); err != nil {
			org.Spec.InvitationChanges, failed = append(org.Spec.InvitationChanges, c), err
		}
	}
	return controller.Result{}, failed
}

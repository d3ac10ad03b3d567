package organization

import (
	"context"
	"slices"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// requests carries out spec.requestChanges. It can be interrupted anywhere: a change that was carried out
// is carried out again without effect.
type requests struct {
	cluster clusterFunc
	// current reads the Organization from kcp itself.
	current current
	change  func(ctx context.Context, cluster string, c v1alpha1.RequestChange) error
}

func (*requests) Condition() string { return v1alpha1.ConditionRequestsChanged }

func (s *requests) Reconcile(ctx context.Context, org *v1alpha1.Organization) (controller.Result, error) {
	changes := org.Spec.RequestChanges
	if len(changes) == 0 {
		return controller.Result{}, nil
	}
	cluster, ok := s.cluster(org.Name)
	if !ok {
		return controller.Result{Message: "requests are made once the organization's workspace exists"}, nil
	}
	// A cache that is behind can show a change that was carried out, and a request that was removed since.
	now, err := s.current(ctx, org)
	if err != nil {
		return controller.Result{}, err
	}
	var failed error
	org.Spec.RequestChanges = nil
	for _, c := range changes {
		if !slices.ContainsFunc(now.Spec.RequestChanges, func(o v1alpha1.RequestChange) bool { return tenancy.SameRequestChange(o, c) }) {
			continue
		}
		if err := s.change(ctx, cluster, c); err != nil {
			org.Spec.RequestChanges, failed = append(org.Spec.RequestChanges, c), err
		}
	}
	return controller.Result{}, failed
}

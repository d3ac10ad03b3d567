package organization

import (
	"context"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// lifecycle freezes an Org that is soft-deleted, opens one that was undeleted, and
// has one whose grace is over removed (O-13).
type lifecycle struct {
	grace time.Duration
	clock clock.PassiveClock
	// workspace is the Org's own, children are those in it.
	workspace func(org string) (*kcptenancyv1alpha1.Workspace, bool)
	children  func(org string) []tenancy.Workspace
	freeze    func(ctx context.Context, cluster string) error
	thaw      func(ctx context.Context, cluster string) error
	// shut tells whether a logical cluster is closed.
	shut func(cluster string) bool
	// remove removes the very Organization that it is given: a withdrawn request is
	// never carried out.
	remove  func(ctx context.Context, o *v1alpha1.Organization) error
	cascade *cascade
}

func (*lifecycle) Condition() string { return v1alpha1.ConditionActive }

func (s *lifecycle) Reconcile(ctx context.Context, org *v1alpha1.Organization) (controller.Result, error) {
	if !org.DeletionTimestamp.IsZero() {
		return s.cascade.reconcile(ctx, org)
	}
	held := controller.AddFinalizer(org)
	requested := org.Status.DeletionRequestedAt
	if requested == nil {
		ws, ok := s.workspace(org.Name)
		if meta.IsStatusConditionFalse(org.Status.Conditions, v1alpha1.ConditionActive) || ok && ws.Spec.Cluster != "" && s.shut(ws.Spec.Cluster) {
			return controller.Result{}, s.open(ctx, org.Name)
		}
		return controller.Result{}, nil
	}
	result, over := controller.InGrace("it", tenancy.PurgeAt(requested, s.grace), s.clock.Now())
	if over && held {
		return result, s.remove(ctx, org)
	}
	return result.Deactivate(org.Status.Conditions, func() error { return s.close(ctx, org.Name) })
}

// close freezes what is in the Org first: its own workspace is where their state is
// written.
func (s *lifecycle) close(ctx context.Context, org string) error {
	for _, ws := range s.children(org) {
		if ws.KCPReady && !ws.Terminating {
			if err := s.freeze(ctx, ws.ClusterID); err != nil {
				return err
			}
		}
	}
	if ws, ok := s.workspace(org); ok && ws.Spec.Cluster != "" {
		return s.freeze(ctx, ws.Spec.Cluster)
	}
	return nil
}

// open leaves those Workspaces frozen that are soft-deleted themselves, also those
// that were deleted, and closed, while they were being opened here.
func (s *lifecycle) open(ctx context.Context, org string) error {
	if ws, ok := s.workspace(org); ok && ws.Spec.Cluster != "" {
		if err := s.thaw(ctx, ws.Spec.Cluster); err != nil {
			return err
		}
	}
	opened := map[string]bool{}
	for _, ws := range s.children(org) {
		if ws.ClusterID != "" && !ws.Deleted() {
			if err := s.thaw(ctx, ws.ClusterID); err != nil {
				return err
			}
			opened[ws.UUID] = true
		}
	}
	for _, ws := range s.children(org) {
		if opened[ws.UUID] && ws.Deleted() && ws.KCPReady && !ws.Terminating {
			if err := s.freeze(ctx, ws.ClusterID); err != nil {
				return err
			}
		}
	}
	return nil
}

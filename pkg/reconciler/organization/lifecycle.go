package organization

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// lifecycle deactivates a soft-deleted Organization in kcp, activates one that was
// undeleted, and deletes one after its grace period (O-13).
type lifecycle struct {
	grace time.Duration
	hold  func() bool
	clock clock.PassiveClock
	orgs  organizations
	// workspaces has the Organization's kcp Workspace, and children its child Workspaces.
	workspaces workspaces
	children   func(org string) []tenancy.Workspace
	clusters   Clusters
	cascade    *cascade
}

func (*lifecycle) Condition() string { return v1alpha1.ConditionActive }

func (s *lifecycle) Reconcile(ctx context.Context, org *v1alpha1.Organization) (controller.Result, error) {
	if !org.DeletionTimestamp.IsZero() {
		return s.cascade.reconcile(ctx, org)
	}
	hasFinalizer := controller.AddFinalizer(org)
	requested := org.Status.DeletionRequestedAt
	if requested == nil {
		ws, ok := s.workspaces.of(org.Name)
		if meta.IsStatusConditionFalse(org.Status.Conditions, v1alpha1.ConditionActive) || ok && ws.Spec.Cluster != "" && s.clusters.Deactivated(ws.Spec.Cluster) {
			return controller.Result{}, s.activate(ctx, org.Name)
		}
		return controller.Result{}, nil
	}
	result, over := controller.InGrace("it", tenancy.PurgeAt(requested, s.grace), s.clock.Now(), s.hold)
	if over && hasFinalizer {
		// A request for deletion that was withdrawn is never carried out.
		return result, s.orgs.DeleteUnchanged(ctx, s.orgs.cluster, org)
	}
	return result.Deactivate(org.Status.Conditions, func() error { return s.deactivate(ctx, org.Name) })
}

// deactivate deactivates the child Workspaces first, because their status is written in
// the Organization's own workspace.
func (s *lifecycle) deactivate(ctx context.Context, org string) error {
	var partial error
	for _, ws := range s.children(org) {
		if ws.KCPReady && !ws.Terminating {
			err := s.clusters.Deactivate(ctx, ws.ClusterID)
			if controller.Partial(err) {
				// The others do not stay active because of it.
				partial = err
			} else if err != nil {
				return err
			}
		}
	}
	if ws, ok := s.workspaces.of(org); ok && ws.Spec.Cluster != "" {
		if err := s.clusters.Deactivate(ctx, ws.Spec.Cluster); err != nil {
			return err
		}
	}
	return partial
}

// activate leaves the child Workspaces deactivated that are soft-deleted themselves. One
// that is soft-deleted during the call may be activated here after its own controller
// deactivated it; it is deactivated again.
func (s *lifecycle) activate(ctx context.Context, org string) error {
	if ws, ok := s.workspaces.of(org); ok && ws.Spec.Cluster != "" {
		if err := s.clusters.Activate(ctx, ws.Spec.Cluster); err != nil {
			return err
		}
	}
	activated := map[string]bool{}
	for _, ws := range s.children(org) {
		if ws.ClusterID != "" && !ws.Deleted() {
			if err := s.clusters.Activate(ctx, ws.ClusterID); err != nil {
				return err
			}
			activated[ws.UUID] = true
		}
	}
	for _, ws := range s.children(org) {
		if activated[ws.UUID] && ws.Deleted() && ws.KCPReady && !ws.Terminating {
			if err := s.clusters.Deactivate(ctx, ws.ClusterID); err != nil && !controller.Partial(err) {
				return err
			}
		}
	}
	return nil
}

package workspace

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// lifecycle deactivates a soft-deleted Workspace in kcp, activates it after an undelete,
// and deletes it after the grace period (O-13).
type lifecycle struct {
	clock, rightsClock clock.PassiveClock
	graces             tenancy.Graces
	hold               func() bool
	// org finds the Organization with its workspace in a logical cluster.
	org        func(cluster string) (tenancy.Org, bool)
	clusters   Clusters
	workspaces objects.Workspaces
	// ended soft-deletes just this version of a Workspace.
	ended   func(ctx context.Context, orgCluster string, ws *kcptenancyv1alpha1.Workspace, mark string) error
	cascade *cascade
}

func (*lifecycle) Condition() string { return v1alpha1.ConditionActive }

func (s *lifecycle) Reconcile(ctx context.Context, o *object) (controller.Result, error) {
	if tenancy.IsSpare(o) {
		// Nothing depends on it, so it goes without a cascade.
		return controller.Result{}, nil
	}
	orgCluster := string(logicalcluster.From(o))
	if !o.DeletionTimestamp.IsZero() {
		return s.cascade.reconcile(ctx, orgCluster, o)
	}
	hasFinalizer := controller.AddFinalizer(o)
	ws := tenancy.WorkspaceOf("", o.Workspace)
	now := s.rightsClock.Now()
	if mark := (map[string]string{}); tenancy.MarkEnded(ws, mark, now) {
		// Everything else follows from the mark.
		return controller.Result{Stop: true}, s.ended(ctx, orgCluster, o.Workspace, mark[v1alpha1.DeletionRequestedAtAnnotation])
	}
	if ws.DeletionRequestedAt == nil {
		if meta.IsStatusConditionFalse(o.common.Conditions, v1alpha1.ConditionActive) ||
			ws.ClusterID != "" && s.clusters.Deactivated(ws.ClusterID) && !s.orgDeactivated(orgCluster) {
			return controller.Result{}, s.activate(ctx, orgCluster, ws.ClusterID)
		}
		if ws.ExpiresAt != nil {
			return controller.Result{RequeueAfter: ws.ExpiresAt.Sub(now)}, nil
		}
		return controller.Result{}, nil
	}
	result, over := controller.InGrace("it", s.graces.PurgeAt(ws), s.clock.Now(), s.hold)
	switch {
	case unreadable(o):
		// The end of the grace period is unknown: the Workspace stays soft-deleted.
		result.Message, result.RequeueAfter = "its mark of deletion cannot be read; undelete it, and delete it again", 0
	case over && hasFinalizer:
		// An undelete in the meantime prevents the deletion.
		return result, s.workspaces.DeleteUnchanged(ctx, orgCluster, o.Workspace)
	}
	if !ws.KCPReady {
		// kcp must finish creating the Workspace before it can be deactivated.
		return result, nil
	}
	return result.Deactivate(o.common.Conditions, func() error { return s.clusters.Deactivate(ctx, ws.ClusterID) })
}

// activate activates the Workspace. If its Organization is soft-deleted by then, activate
// deactivates the Workspace again.
func (s *lifecycle) activate(ctx context.Context, orgCluster, cluster string) error {
	if err := s.clusters.Activate(ctx, cluster); err != nil || !s.orgDeactivated(orgCluster) {
		return err
	}
	if err := s.clusters.Deactivate(ctx, cluster); err != nil && !controller.Partial(err) {
		return err
	}
	return fmt.Errorf("%w: its organization was deleted", controller.ErrRetry)
}

func (s *lifecycle) orgDeactivated(orgCluster string) bool {
	org, _ := s.org(orgCluster)
	return org.Deactivated()
}

// unreadable reports whether the time of the deletion request cannot be parsed.
func unreadable(o *object) bool {
	_, err := time.Parse(time.RFC3339, o.Annotations[v1alpha1.DeletionRequestedAtAnnotation])
	return err != nil
}

// cascade removes the Memberships and the Bots of the Workspace and then the finalizer. kcp
// itself deletes the content of the Workspace.
type cascade struct {
	memberships objects.Memberships
	bots        objects.Bots
	clusters    Clusters
	purged      func(ctx context.Context, orgCluster, workspace string, counts map[string]int)
	// reported prevents a second call of purged after the removal of the finalizer failed.
	reported controller.Once
}

func (s *cascade) reconcile(ctx context.Context, orgCluster string, o *object) (controller.Result, error) {
	result := controller.Result{Message: "kcp is removing the workspace", Stop: true}
	if !controller.HasFinalizer(o) {
		return result, nil
	}
	memberships, err := s.memberships.List(ctx, orgCluster)
	if err != nil {
		return result, err
	}
	memberships = slices.DeleteFunc(memberships, func(m *v1alpha1.Membership) bool { return tenancy.WorkspaceUUID(m) != o.Name })
	bots, err := s.bots.List(ctx, orgCluster)
	if err != nil {
		return result, err
	}
	bots = slices.DeleteFunc(bots, func(b *v1alpha1.Bot) bool { return b.Spec.WorkspaceRef.Name != o.Name })
	counts, ok := controller.Recorded(o)
	if !ok {
		return result, controller.Record(o, map[string]int{"memberships": len(memberships), "bots": len(bots)})
	}
	for _, b := range bots {
		if err := s.bots.Delete(ctx, orgCluster, b); err != nil {
			return result, err
		}
	}
	for _, m := range memberships {
		if err := s.memberships.DeleteUnchanged(ctx, orgCluster, m); err != nil {
			return result, err
		}
	}
	if o.Spec.Cluster != "" {
		if err := s.clusters.ActivateForDeletion(ctx, o.Spec.Cluster); err != nil {
			return result, err
		}
	}
	s.reported.Do(o.UID, func() { s.purged(ctx, orgCluster, o.Name, counts) })
	controller.RemoveFinalizer(o)
	return result, nil
}

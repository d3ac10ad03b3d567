package workspace

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Lifecycle is what becomes of a Workspace that is deleted.
type Lifecycle struct {
	Grace time.Duration
	// Freeze and Thaw close and open a logical cluster; Release opens one that kcp is
	// to clean up.
	Freeze, Thaw, Release func(ctx context.Context, cluster string) error
	// Shut tells whether a logical cluster is closed.
	Shut func(cluster string) bool
	// Closed tells whether the Org whose own workspace is in the cluster is
	// soft-deleted, and all in it closed with it.
	Closed func(orgCluster string) bool
	// Remove removes the very Workspace that it is given: a withdrawn request is never
	// carried out.
	Remove func(ctx context.Context, orgCluster string, ws *kcptenancyv1alpha1.Workspace) error
	// ListMemberships reads those of the Org from kcp itself.
	ListMemberships  func(ctx context.Context, orgCluster string) ([]v1alpha1.Membership, error)
	RemoveMembership func(ctx context.Context, orgCluster string, m *v1alpha1.Membership) error
	// Purged tells of a Workspace that is gone, with what was in it.
	Purged func(ctx context.Context, org, workspace string, counts map[string]int)
}

// lifecycle freezes a Workspace that is soft-deleted, opens one that was undeleted,
// and has one whose grace is over removed (O-13).
type lifecycle struct {
	config Config
	// told is of which Workspaces it was told that they are gone.
	told controller.Once
}

func (*lifecycle) Condition() string { return v1alpha1.ConditionActive }

func (s *lifecycle) Reconcile(ctx context.Context, o *object) (controller.Result, error) {
	c, orgCluster := s.config.Lifecycle, string(logicalcluster.From(o))
	if !o.DeletionTimestamp.IsZero() {
		return s.cascade(ctx, orgCluster, o)
	}
	held := controller.AddFinalizer(o)
	ws := tenancy.WorkspaceOf("", o.Workspace)
	if ws.DeletionRequestedAt == nil {
		if meta.IsStatusConditionFalse(o.common.Conditions, v1alpha1.ConditionActive) || ws.ClusterID != "" && c.Shut(ws.ClusterID) && !c.Closed(orgCluster) {
			return controller.Result{}, s.open(ctx, orgCluster, ws.ClusterID)
		}
		return controller.Result{}, nil
	}
	result, over := controller.InGrace("it", tenancy.PurgeAt(ws.DeletionRequestedAt, c.Grace), s.config.Clock.Now())
	switch {
	case unreadable(o):
		// When its grace ends nobody knows: it is as good as deleted, and kept.
		result.Message, result.RequeueAfter = "its mark of deletion cannot be read; undelete it, and delete it again", 0
	case over && held:
		return result, c.Remove(ctx, orgCluster, o.Workspace)
	}
	if !ws.KCPReady {
		// kcp has to finish making it before it can be closed.
		return result, nil
	}
	return result.Deactivate(o.common.Conditions, func() error { return c.Freeze(ctx, ws.ClusterID) })
}

// open opens the Workspace, unless its Org is closed: that may have come to pass, and
// the Workspace have been closed with it, while it was being opened here.
func (s *lifecycle) open(ctx context.Context, orgCluster, cluster string) error {
	c := s.config.Lifecycle
	if err := c.Thaw(ctx, cluster); err != nil || !c.Closed(orgCluster) {
		return err
	}
	if err := c.Freeze(ctx, cluster); err != nil {
		return err
	}
	return fmt.Errorf("%w: its organization was deleted", controller.ErrRetry)
}

// unreadable tells whether the mark of deletion is not the hub's own.
func unreadable(o *object) bool {
	_, err := time.Parse(time.RFC3339, o.Annotations[v1alpha1.DeletionRequestedAtAnnotation])
	return err != nil
}

// cascade removes the Memberships of the Workspace, lets kcp clean the Workspace up
// and lets go of it. kcp itself removes what is in it.
func (s *lifecycle) cascade(ctx context.Context, orgCluster string, o *object) (controller.Result, error) {
	result := controller.Result{Message: "kcp is removing the workspace", Stop: true}
	c := s.config.Lifecycle
	if !controller.HasFinalizer(o) {
		return result, nil
	}
	memberships, err := c.ListMemberships(ctx, orgCluster)
	if err != nil {
		return result, err
	}
	memberships = slices.DeleteFunc(memberships, func(m v1alpha1.Membership) bool {
		return tenancy.WorkspaceUUID(&m) != o.Name
	})
	counts, ok := controller.Recorded(o)
	if !ok {
		return result, controller.Record(o, map[string]int{"memberships": len(memberships)})
	}
	for i := range memberships {
		if err := c.RemoveMembership(ctx, orgCluster, &memberships[i]); err != nil {
			return result, err
		}
	}
	if o.Spec.Cluster != "" {
		if err := c.Release(ctx, o.Spec.Cluster); err != nil {
			return result, err
		}
	}
	s.told.Do(o.UID, func() { c.Purged(ctx, orgCluster, o.Name, counts) })
	controller.RemoveFinalizer(o)
	return result, nil
}

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
type lifecycle struct{ config Config }

func (*lifecycle) Condition() string { return v1alpha1.ConditionActive }

func (s *lifecycle) Reconcile(ctx context.Context, o *object) (controller.Outcome, error) {
	c, orgCluster := s.config.Lifecycle, string(logicalcluster.From(o))
	if !o.DeletionTimestamp.IsZero() {
		return s.cascade(ctx, orgCluster, o)
	}
	// What is removed before kcp has the finalizer leaves all behind that it had.
	held := slices.Contains(o.Finalizers, v1alpha1.CascadeFinalizer)
	if !held {
		o.Finalizers = append(o.Finalizers, v1alpha1.CascadeFinalizer)
	}
	ws := tenancy.WorkspaceOf("", o.Workspace)
	if ws.DeletionRequestedAt == nil {
		if meta.IsStatusConditionFalse(o.common.Conditions, v1alpha1.ConditionActive) {
			return controller.Outcome{}, c.Thaw(ctx, ws.ClusterID)
		}
		return controller.Outcome{}, nil
	}
	left := tenancy.Left(*ws.DeletionRequestedAt, c.Grace, s.config.Clock.Now())
	outcome := controller.Outcome{
		Waiting: fmt.Sprintf("it was deleted; until %s it can be undeleted", tenancy.PurgeAt(ws.DeletionRequestedAt, c.Grace).UTC().Format(time.RFC3339)),
		After:   left, Stop: true,
	}
	switch {
	case unreadable(o):
		// When its grace ends nobody knows: it is as good as deleted, and kept.
		outcome.Waiting, outcome.After = "its mark of deletion cannot be read; undelete it, and delete it again", 0
	case left == 0 && held:
		return outcome, c.Remove(ctx, orgCluster, o.Workspace)
	}
	if !ws.KCPReady {
		// kcp has to finish making it before it can be closed.
		return outcome, nil
	}
	if !meta.IsStatusConditionFalse(o.common.Conditions, v1alpha1.ConditionActive) {
		// That it may be closed is in kcp before it is: whoever finds the request
		// withdrawn must know that there is something to open.
		outcome.Reason, outcome.After = v1alpha1.ReasonProgressing, closing
		return outcome, nil
	}
	return outcome.Despite(c.Freeze(ctx, ws.ClusterID))
}

// closing is how soon something is closed after it was said that it will be.
const closing = 5 * time.Millisecond

// unreadable tells whether the mark of deletion is not the hub's own.
func unreadable(o *object) bool {
	_, err := time.Parse(time.RFC3339, o.Annotations[v1alpha1.DeletionRequestedAtAnnotation])
	return err != nil
}

// cascade removes the Memberships of the Workspace, lets kcp clean the Workspace up
// and lets go of it. kcp itself removes what is in it.
func (s *lifecycle) cascade(ctx context.Context, orgCluster string, o *object) (controller.Outcome, error) {
	outcome := controller.Outcome{Waiting: "kcp is removing the workspace", Stop: true}
	c := s.config.Lifecycle
	if !slices.Contains(o.Finalizers, v1alpha1.CascadeFinalizer) {
		return outcome, nil
	}
	memberships, err := c.ListMemberships(ctx, orgCluster)
	if err != nil {
		return outcome, err
	}
	removed := 0
	for i := range memberships {
		if ref := memberships[i].Spec.WorkspaceRef; ref != nil && ref.Name == o.Name {
			if err := c.RemoveMembership(ctx, orgCluster, &memberships[i]); err != nil {
				return outcome, err
			}
			removed++
		}
	}
	if o.Spec.Cluster != "" {
		if err := c.Release(ctx, o.Spec.Cluster); err != nil {
			return outcome, err
		}
	}
	c.Purged(ctx, orgCluster, o.Name, map[string]int{"memberships": removed})
	o.Finalizers = slices.DeleteFunc(o.Finalizers, func(f string) bool { return f == v1alpha1.CascadeFinalizer })
	return outcome, nil
}

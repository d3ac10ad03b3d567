package invitation

import (
	"context"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Invitations reconciles Invitations.
type Invitations struct {
	Clock       clock.PassiveClock
	Invitations objects.Repository[*v1alpha1.Invitation]
	// Cached finds a child Workspace in the cache, and Exists asks kcp.
	Cached func(cluster, workspace string) (*kcptenancyv1alpha1.Workspace, bool)
	Exists func(ctx context.Context, cluster, workspace string) (bool, error)
	// Deactivated reports an Organization that takes no writes.
	Deactivated func(cluster string) bool
}

// Reconcile writes that an Invitation has expired, and removes it when nobody needs to see it any more.
func (c Invitations) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	i, ok := c.Invitations.ByKey(key)
	if !ok || !i.DeletionTimestamp.IsZero() || c.Deactivated(key.Cluster) || i.Annotations[v1alpha1.OperationAnnotation] == v1alpha1.OperationIgnore {
		return controller.Result{}, nil
	}
	now := c.Clock.Now()
	orphaned, err := c.orphaned(ctx, key.Cluster, i)
	if err != nil {
		return controller.Result{}, err
	}
	expires, removed := i.Spec.ExpiresAt.Time, i.Spec.ExpiresAt.Add(tenancy.InvitationsKept)
	switch {
	case orphaned || !now.Before(removed):
		return controller.Result{}, c.Invitations.DeleteUnchanged(ctx, key.Cluster, i)
	case now.Before(expires):
		return controller.Result{RequeueAfter: expires.Sub(now) + time.Millisecond}, nil
	case tenancy.InvitationStateAt(i, now) != i.Status.State:
		status := i.Status
		status.State = v1alpha1.InvitationExpired
		return controller.Result{}, c.Invitations.Merge(ctx, key.Cluster, i, map[string]any{"status": status}, "status")
	}
	return controller.Result{RequeueAfter: removed.Sub(now) + time.Millisecond}, nil
}

// orphaned reports whether the Workspace of an Invitation does not exist. The cache of Workspaces may be
// behind that of Invitations, so kcp has the last word.
func (c Invitations) orphaned(ctx context.Context, cluster string, i *v1alpha1.Invitation) (bool, error) {
	workspace := tenancy.InvitedWorkspace(i.Spec)
	if workspace == "" {
		return false, nil
	}
	if _, ok := c.Cached(cluster, workspace); ok {
		return false, nil
	}
	exists, err := c.Exists(ctx, cluster, workspace)
	return !exists, err
}

package accessrequest

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

// Requests reconciles AccessRequests.
type Requests struct {
	Clock    clock.PassiveClock
	Requests objects.Repository[*v1alpha1.AccessRequest]
	// Cached finds a child Workspace in the cache, and Exists asks kcp.
	Cached func(cluster, workspace string) (*kcptenancyv1alpha1.Workspace, bool)
	Exists func(ctx context.Context, cluster, workspace string) (bool, error)
	// Deactivated reports an Organization that takes no writes.
	Deactivated func(cluster string) bool
}

// Reconcile writes that an AccessRequest has lapsed or ended, and removes it when nobody needs to see it any more.
func (c Requests) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	r, ok := c.Requests.ByKey(key)
	if !ok || !r.DeletionTimestamp.IsZero() || c.Deactivated(key.Cluster) || r.Annotations[v1alpha1.OperationAnnotation] == v1alpha1.OperationIgnore {
		return controller.Result{}, nil
	}
	exists := true
	if _, cached := c.Cached(key.Cluster, r.Spec.WorkspaceRef.Name); !cached {
		// The cache of Workspaces may be behind that of requests, so kcp has the last word.
		var err error
		if exists, err = c.Exists(ctx, key.Cluster, r.Spec.WorkspaceRef.Name); err != nil {
			return controller.Result{}, err
		}
	}
	now := c.Clock.Now()
	removed := r.CreationTimestamp.Add(tenancy.RequestsKept)
	if !exists || !now.Before(removed) {
		return controller.Result{}, c.Requests.DeleteUnchanged(ctx, key.Cluster, r)
	}
	if state := tenancy.RequestStateAt(r, now); state != r.Status.State && state != v1alpha1.RequestOpen {
		status := r.Status
		status.State = state
		return controller.Result{}, c.Requests.Merge(ctx, key.Cluster, r, map[string]any{"status": status}, "status")
	}
	next := removed
	if end := tenancy.RequestEnd(r); end != nil && end.Before(next) {
		next = *end
	}
	return controller.Result{RequeueAfter: next.Sub(now) + time.Millisecond}, nil
}

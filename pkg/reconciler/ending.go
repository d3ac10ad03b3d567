package reconciler

import (
	"context"
	"time"

	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// Ending are the objects of one kind that end by time.
type Ending[T kcp.Object] struct {
	Objects objects.Repository[T]
	// Workspace returns the child Workspace that an object is for; it is empty if there is none.
	Workspace func(T) string
	// At returns the status that an object has to get now, or nil if it has the right one, when that will change,
	// and when nobody needs to see the object any more.
	At func(o T, now time.Time) (status any, again, removed time.Time)
}

// Controller returns the controller of these objects.
func (e Ending[T]) Controller(d Deps, name string, kind *views.Kind[T]) *controller.Controller {
	work := e.Reconciler(d.Settings.Clock, d.Objects().Workspaces, d.OrgDeactivated)
	c := d.Controller(controller.Options{Name: name, All: Keys(kind.Keys)}, work)
	OnPlaces(d, kind, e.Workspace, c.Enqueue)
	return c
}

// Reconciler writes that an object has ended, and removes it in the end, or with its Workspace. deactivated reports
// an Organization that takes no writes.
func (e Ending[T]) Reconciler(
	clock clock.PassiveClock, workspaces objects.Workspaces, deactivated func(cluster string) bool,
) controller.Func {
	return func(ctx context.Context, key controller.Key) (controller.Result, error) {
		o, ok := e.Objects.ByKey(key)
		if !ok || !o.GetDeletionTimestamp().IsZero() || deactivated(key.Cluster) ||
			o.GetAnnotations()[v1alpha1.OperationAnnotation] == v1alpha1.OperationIgnore {
			return controller.Result{}, nil
		}
		orphaned, err := isOrphaned(ctx, workspaces, key.Cluster, e.Workspace(o))
		if err != nil {
			return controller.Result{}, err
		}
		now := clock.Now()
		status, again, removed := e.At(o, now)
		switch {
		case orphaned || !now.Before(removed):
			return controller.Result{}, e.Objects.DeleteUnchanged(ctx, key.Cluster, o)
		case status != nil:
			return controller.Result{}, e.Objects.Merge(ctx, key.Cluster, o, map[string]any{"status": status}, "status")
		case removed.Before(again):
			again = removed
		}
		return controller.Result{RequeueAfter: again.Sub(now) + time.Millisecond}, nil
	}
}

// isOrphaned reports whether the named Workspace does not exist. The cache of Workspaces may be behind that of
// other objects, so kcp has the last word.
func isOrphaned(ctx context.Context, workspaces objects.Workspaces, cluster, name string) (bool, error) {
	if name == "" {
		return false, nil
	}
	if _, ok := workspaces.Get(cluster, name); ok {
		return false, nil
	}
	exists, err := workspaces.Exists(ctx, cluster, name)
	return !exists, err
}

package customresources

import (
	"context"
	"sync"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	// pace is the minimum interval between two checks of a Workspace after writes, because
	// tenants decide how often they write.
	pace = 500 * time.Millisecond
	// following is the time after a write during which a Workspace is checked again, at growing
	// intervals: a deleted definition exists until all its objects are deleted. A later change
	// is found by the next check of all Workspaces.
	following = 5 * time.Minute
)

// Config are the reads and writes of CustomResources.
type Config struct {
	Clock clock.PassiveClock
	// Workspace finds a child Workspace that is Ready in kcp and not deleted.
	Workspace func(controller.Key) (*kcptenancyv1alpha1.Workspace, bool)
	// List lists the names of the CustomResourceDefinitions in a logical cluster in kcp.
	List func(ctx context.Context, cluster string) ([]string, error)
	// Annotate sets CustomResourcesAnnotation on this version of a Workspace, or removes it if
	// the value is empty. It returns controller.ErrRetry if the Workspace has changed.
	Annotate func(ctx context.Context, key controller.Key, ws *kcptenancyv1alpha1.Workspace, value string) error
}

// CustomResources keeps the names of the CustomResourceDefinitions of each Workspace in an annotation,
// from which its roles are derived. Every replica does so after the writes that it forwarded. The list
// in kcp is the source of truth; after a conflict the Workspace is checked again.
type CustomResources struct {
	config Config

	mu      sync.Mutex
	writing map[controller.Key]*writing
}

// writing is a Workspace with recent writes of definitions.
type writing struct{ wrote, looked time.Time }

// New returns a CustomResources.
func New(c Config) *CustomResources {
	return &CustomResources{config: c, writing: map[controller.Key]*writing{}}
}

// Written records that the definitions in a Workspace may have changed. Follow must be called for it
// afterwards.
func (r *CustomResources) Written(key controller.Key) {
	now := r.config.Clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.writing[key]; w != nil {
		w.wrote = now
		return
	}
	r.writing[key] = &writing{wrote: now}
}

// Follow checks a Workspace in which definitions were written. It requests further checks as long as
// definitions can still disappear.
func (r *CustomResources) Follow(ctx context.Context, key controller.Key) (controller.Result, error) {
	now := r.config.Clock.Now()
	since, wait := r.begin(key, now)
	if wait > 0 {
		return controller.Result{RequeueAfter: wait}, nil
	}
	if _, err := r.Look(ctx, key); err != nil {
		return controller.Result{}, err
	}
	return controller.Result{RequeueAfter: r.next(key, since)}, nil
}

// begin returns the time since the last write in a Workspace and the time until the next check.
func (r *CustomResources) begin(key controller.Key, now time.Time) (since, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.writing[key]
	if w == nil {
		return following, 0
	}
	if left := pace - now.Sub(w.looked); left > 0 {
		return 0, left
	}
	w.looked = now
	return now.Sub(w.wrote), 0
}

// next is the time until the next check: as long as the time since the write.
func (r *CustomResources) next(key controller.Key, since time.Duration) time.Duration {
	if since < following {
		return max(since, pace)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// There may have been a write during the check.
	if w := r.writing[key]; w != nil && w.looked.Sub(w.wrote) >= following {
		delete(r.writing, key)
	}
	return 0
}

// Look compares the annotation of a Workspace with its definitions.
func (r *CustomResources) Look(ctx context.Context, key controller.Key) (controller.Result, error) {
	ws, ok := r.config.Workspace(key)
	if !ok {
		return controller.Result{}, nil
	}
	// The Workspace was read before the list, so that an older list never replaces a newer
	// one.
	names, err := r.config.List(ctx, ws.Spec.Cluster)
	if err != nil {
		return controller.Result{}, err
	}
	value := tenancy.EncodeCustomResources(names)
	if value == ws.Annotations[tenancy.CustomResourcesAnnotation] {
		return controller.Result{}, nil
	}
	return controller.Result{}, r.config.Annotate(ctx, key, ws, value)
}

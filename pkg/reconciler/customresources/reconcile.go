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
	// pace is the shortest time between two looks at a Workspace for what its
	// tenants write, who decide how often they do.
	pace = 500 * time.Millisecond
	// following is for how long a Workspace is looked at again after a write, ever
	// more rarely: a definition that is deleted is there until all of its objects
	// are gone. What takes longer is found by the next look at all Workspaces.
	following = 5 * time.Minute
)

// Config is what CustomResources reads and writes.
type Config struct {
	Clock clock.PassiveClock
	// Workspace reads a child Workspace that kcp has finished and nobody deleted.
	Workspace func(controller.Key) (*kcptenancyv1alpha1.Workspace, bool)
	// List names the CustomResourceDefinitions in a logical cluster, as kcp itself
	// has them.
	List func(ctx context.Context, cluster string) ([]string, error)
	// Annotate sets CustomResourcesAnnotation on just the Workspace that it is given;
	// empty takes it off. It returns a controller.ErrRetry where that has changed.
	Annotate func(ctx context.Context, key controller.Key, ws *kcptenancyv1alpha1.Workspace, value string) error
}

// CustomResources keep written on each Workspace which CustomResourceDefinitions
// its tenants have made, for its roles to follow. Every replica writes that, for
// the writes that it has forwarded: the list in kcp is the truth, and of two that
// write at once the slower one looks again.
type CustomResources struct {
	config Config

	mu      sync.Mutex
	writing map[controller.Key]*writing
}

// writing is a Workspace whose tenants have written to their definitions.
type writing struct{ wrote, looked time.Time }

// New returns CustomResources that know of no write.
func New(c Config) *CustomResources {
	return &CustomResources{config: c, writing: map[controller.Key]*writing{}}
}

// Written notes that the definitions in a Workspace may have changed. Follow must
// be called for it then.
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

// Follow looks at a Workspace in which definitions were written, and asks to be
// called again for as long as they may still change by themselves.
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

// begin is how long ago a Workspace was written to, and how long to wait before
// it is looked at again.
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

// next is when to look again: as long after as the write is past.
func (r *CustomResources) next(key controller.Key, since time.Duration) time.Duration {
	if since < following {
		return max(since, pace)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// It may have been written to while it was looked at.
	if w := r.writing[key]; w != nil && w.looked.Sub(w.wrote) >= following {
		delete(r.writing, key)
	}
	return 0
}

// Look compares what is written on a Workspace with what is in it.
func (r *CustomResources) Look(ctx context.Context, key controller.Key) (controller.Result, error) {
	ws, ok := r.config.Workspace(key)
	if !ok {
		return controller.Result{}, nil
	}
	// The Workspace was read before the list, so that no older list is ever written
	// over a newer one.
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

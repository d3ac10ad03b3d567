package catalogentry

import (
	"context"
	"sync"
	"time"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
)

const (
	// proberWorkers is the number of servers that are probed at once, and probesAtOnce the
	// number of those of one place, so that slow servers of one Organization leave room for the
	// others.
	proberWorkers = 16
	probesAtOnce  = 3
	// busyDelay is the time after which an entry is tried again if its place has that many
	// probes.
	busyDelay = time.Second
)

// probes remembers the last probe of each server. A restart forgets all.
type probes struct {
	get func(controller.Key) (*v1alpha1.CatalogEntry, bool)
	// probe says why a server is not reachable; empty if it is.
	probe func(ctx context.Context, url string) (problem string)
	// changed is called when a probe has another result than the one before.
	changed func(controller.Key)

	mu    sync.Mutex
	known map[controller.Key]string
	busy  map[string]int
}

func (p *probes) last(key controller.Key) (problem string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	problem, ok = p.known[key]
	return problem, ok
}

// reconcile probes the server of one entry, and asks for the next probe.
func (p *probes) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	e, ok := p.get(key)
	if !ok || e.Spec.Backend == nil || !e.DeletionTimestamp.IsZero() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.known, key)
		return controller.Result{}, nil
	}
	if !p.enter(key.Cluster) {
		return controller.Result{RequeueAfter: busyDelay}, nil
	}
	defer p.leave(key.Cluster)
	problem := p.probe(ctx, e.Spec.Backend.URL)
	if ctx.Err() != nil {
		return controller.Result{}, ctx.Err()
	}
	if p.record(key, problem) {
		p.changed(key)
	}
	return controller.Result{RequeueAfter: jittered()}, nil
}

func (p *probes) enter(cluster string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy[cluster] >= probesAtOnce {
		return false
	}
	p.busy[cluster]++
	return true
}

func (p *probes) leave(cluster string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy[cluster]--; p.busy[cluster] == 0 {
		delete(p.busy, cluster)
	}
}

// record reports whether the result is another one than before.
func (p *probes) record(key controller.Key, problem string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.known[key]
	p.known[key] = problem
	return !ok || last != problem
}

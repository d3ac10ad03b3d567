package catalogentry

import (
	"context"
	"maps"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/log"
)

const (
	// proberWorkers is the number of servers that are probed at once, and probesAtOnce the
	// number of those of one place.
	proberWorkers = 32
	probesAtOnce  = 2
	// slowWorkers is the number of workers that places with slow servers may occupy at once, all
	// of them together. A place has slow servers if its probes took longer than budget within
	// about the last interval. Many Organizations with slow servers therefore leave half of the
	// workers to the others.
	slowWorkers = proberWorkers / 2
	budget      = 5 * time.Second
	// maxSpent limits what is counted, so that a place is forgiven within two intervals.
	maxSpent = 2 * budget
	// busyDelay is the time after which an entry is tried again that found no place.
	busyDelay = time.Second
)

// unreachable is what people are told of a server, whatever the reason. A publisher could otherwise
// use the hub to learn which hosts and ports answer, and how.
const unreachable = "the server of the provider is not reachable: it must answer HTTPS at a public address, on port 443 or from 1024 on, with a certificate that the hub trusts"

// probes remembers the last probe of each server. A restart forgets all.
type probes struct {
	get func(cluster, name string) (*v1alpha1.CatalogEntry, bool)
	// probe says, for the log, why a server is not reachable.
	probe func(ctx context.Context, url string) error
	// changed are called when a probe has another result than the one before.
	changed []func(controller.Key)
	clock   clock.PassiveClock

	mu    sync.Mutex
	known map[controller.Key]string
	// places are the logical clusters with probes that are running or were running a moment
	// ago, and slow the number of running ones that count against slowWorkers.
	places map[string]*load
	slow   int
	swept  time.Time
}

// load is what the probes of one place cost.
type load struct {
	running int
	// spent is the time that probes took until since. It wears off: budget in one interval.
	spent time.Duration
	since time.Time
}

// at returns the time spent that has not worn off.
func (l *load) at(now time.Time) time.Duration {
	worn := time.Duration(float64(now.Sub(l.since)) * float64(budget) / float64(interval))
	return max(0, l.spent-worn)
}

// onChange subscribes to other results than those before, until the probes begin.
func (p *probes) onChange(f func(controller.Key)) { p.changed = append(p.changed, f) }

// last returns what the last probe found wrong, which is empty if the server answers; ok is false if
// there was no probe yet.
func (p *probes) last(key controller.Key) (problem string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	problem, ok = p.known[key]
	return problem, ok
}

// reconcile probes the server of one entry, and asks for the next probe.
func (p *probes) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	e, ok := p.get(key.Cluster, key.Name)
	if !ok || e.Spec.Backend == nil || !e.DeletionTimestamp.IsZero() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.known, key)
		return controller.Result{}, nil
	}
	leave, ok := p.enter(key.Cluster)
	if !ok {
		return controller.Result{RequeueAfter: wait.Jitter(busyDelay, 1)}, nil
	}
	defer leave()
	err := p.probe(ctx, e.Spec.Backend.URL)
	if ctx.Err() != nil {
		return controller.Result{}, ctx.Err()
	}
	problem := ""
	if err != nil {
		problem = unreachable
	}
	if p.record(key, problem) {
		if err != nil {
			log.From(ctx).Info("the server of a provider is not reachable", zap.Error(err))
		}
		for _, f := range p.changed {
			f(key)
		}
	}
	return controller.Result{RequeueAfter: jittered()}, nil
}

// enter reports whether a probe of a place may run now, and returns what ends it.
func (p *probes) enter(cluster string) (leave func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	began := p.clock.Now()
	l := p.places[cluster]
	if l == nil {
		l = &load{since: began}
	}
	slow := l.at(began) >= budget
	if l.running >= probesAtOnce || slow && p.slow >= slowWorkers {
		return nil, false
	}
	p.forget(began)
	p.places[cluster] = l
	l.running++
	if slow {
		p.slow++
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		now := p.clock.Now()
		l.spent, l.since = min(l.at(now)+now.Sub(began), maxSpent), now
		l.running--
		if slow {
			p.slow--
		}
	}, true
}

// forget removes, once in an interval, the places without running probes whose time has worn off.
func (p *probes) forget(now time.Time) {
	if now.Sub(p.swept) < interval {
		return
	}
	p.swept = now
	maps.DeleteFunc(p.places, func(_ string, l *load) bool { return l.running == 0 && l.at(now) == 0 })
}

// record reports whether the result is another one than before.
func (p *probes) record(key controller.Key, problem string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.known[key]
	p.known[key] = problem
	return !ok || last != problem
}

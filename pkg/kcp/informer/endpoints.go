package informer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
	"github.com/faroshq/kedge-hub/pkg/log"
)

// watched is an Informer of any kind.
type watched interface {
	start(ctx context.Context, url string, changed func())
	// endpoint is what is known of a URL, or nil if it was not started or is retired.
	endpoint(url string) link
	// retire is for a URL that was started.
	retire(url string)
	wait()
}

// link is what an Informer knows of one endpoint.
type link interface {
	isFilled() bool
	// names are the logical clusters that it has objects of.
	names() []string
	hasCluster(cluster string) bool
	// began is since when it does not answer, or zero.
	began() time.Time
}

// Endpoints keeps informers pointed at the endpoints of a kcp, one per shard: the virtual
// workspaces of an APIExport as its APIExportEndpointSlice names them, those of an
// initializer, or the shards themselves. Shards may come and go.
//
// When the source no longer names an endpoint, its objects may still exist: the slice may
// have been recreated, or name the shard by another URL. The endpoint's objects stay
// cached and watched until the source names it again, or until it is redundant: it has no
// objects, or a named and filled endpoint has objects of one of its logical clusters. A
// logical cluster is on one shard only, so both endpoints then lead to the same shard,
// and what the other one does not serve was deleted. There is no time limit: after a
// shard was removed with objects on it, the hub stays unavailable until the shard is
// back or the hub restarts.
//
// While a named endpoint is not filled, or an endpoint that is not named is kept, the
// cache may be stale. After transport.MaxWait the Health becomes unavailable: no request
// is answered from the cache, and no controller writes by it.
//
// An endpoint that has been filled and ceases to answer is the outage of one shard. After
// transport.MaxWait Err refuses the logical clusters that it has objects of, and nothing else,
// until it answers again: rights may be revoked there meanwhile. With the outage of an endpoint
// that has objects of a required logical cluster the Health becomes unavailable.
type Endpoints struct {
	source    source
	required  []string
	informers []watched
	health    *transport.Health
	onOutage  []func()
	// current are the endpoints that are named, and down those with an outage.
	current, down atomic.Pointer[[]string]

	// changed receives when an informer is filled.
	changed chan struct{}
	// The fields below belong to Run. known are the endpoints that were started, and
	// named are those that the slice names.
	known, named []string
	// since is when the cache became stale; zero while it is not.
	since time.Time
}

// NewEndpoints returns the endpoints of the export in the logical cluster. Nothing works without the
// required logical clusters.
func NewEndpoints(c *kcp.Clients, cluster, export string, required []string, informers ...watched) *Endpoints {
	return newEndpoints(exportSource(c, cluster, export), required, informers)
}

// NewInitializers returns the endpoints of the initializer of a WorkspaceType in the logical
// cluster.
func NewInitializers(c *kcp.Clients, cluster, workspaceType string, informers ...watched) *Endpoints {
	return newEndpoints(initializerSource(c, cluster, workspaceType), nil, informers)
}

// NewShards returns the shards of kcp as endpoints. The informers have a credential that may list
// in all logical clusters of a shard; c may list Shards.
func NewShards(c *kcp.Clients, informers ...watched) *Endpoints {
	return newEndpoints(shardSource(c), nil, informers)
}

func newEndpoints(from source, required []string, informers []watched) *Endpoints {
	e := &Endpoints{source: from, required: required, informers: informers, health: transport.NewHealth(), changed: make(chan struct{}, 1)}
	e.current.Store(&[]string{})
	e.down.Store(&[]string{})
	e.health.Lose()
	return e
}

// OnOutage has f called whenever an endpoint ceases to answer; f must not block. It is called while
// the process is wired.
func (e *Endpoints) OnOutage(f func()) { e.onOutage = append(e.onOutage, f) }

// Watch points informers at the virtual workspaces of fixed URLs until ctx ends, and
// then waits until every watch has ended.
func Watch(ctx context.Context, urls []string, informers ...watched) {
	for _, i := range informers {
		for _, url := range urls {
			i.start(ctx, url, func() {})
		}
	}
	<-ctx.Done()
	for _, i := range informers {
		i.wait()
	}
}

// pollRedundant is how often it is checked whether a kept endpoint is redundant.
const pollRedundant = 250 * time.Millisecond

// Run follows the endpoint slice until ctx ends, and then waits until every watch has
// ended. Failures are retried with a back-off.
func (e *Endpoints) Run(ctx context.Context) {
	named := make(chan []string)
	var following sync.WaitGroup
	following.Go(func() { e.follow(ctx, named) })
	for ctx.Err() == nil {
		var poll <-chan time.Time
		if !e.update(ctx) {
			poll = time.After(pollRedundant)
		}
		select {
		case <-ctx.Done():
		case urls := <-named:
			e.point(ctx, urls)
		case <-e.changed:
		case <-poll:
		}
	}
	following.Wait()
	for _, i := range e.informers {
		i.wait()
	}
}

// follow sends the URLs that the slice names.
func (e *Endpoints) follow(ctx context.Context, to chan<- []string) {
	logger := log.From(ctx).With(zap.String("source", e.source.name))
	backoff := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 8, Cap: 5 * time.Second}
	delay := backoff
	for ctx.Err() == nil {
		began := time.Now()
		if err := e.watch(ctx, to); err != nil && ctx.Err() == nil {
			logger.Debug("cannot follow the endpoints; trying again", zap.Error(err))
		}
		if time.Since(began) > time.Minute {
			delay = backoff
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay.Step()):
		}
	}
}

func (e *Endpoints) watch(ctx context.Context, to chan<- []string) error {
	urls, version, err := e.source.get(ctx)
	if err != nil {
		return err
	}
	send(ctx, to, urls)
	w, err := e.source.watch(ctx, version)
	if err != nil {
		return fmt.Errorf("watch %s: %w", e.source.name, err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			return fmt.Errorf("watch %s: %v", e.source.name, event.Object)
		}
		if event.Type == watch.Deleted {
			continue
		}
		if urls, _, err = e.source.get(ctx); err != nil {
			return err
		}
		send(ctx, to, urls)
	}
	return nil
}

func send(ctx context.Context, to chan<- []string, urls []string) {
	select {
	case to <- urls:
	case <-ctx.Done():
	}
}

// point starts to watch the named endpoints that are not watched yet.
func (e *Endpoints) point(ctx context.Context, urls []string) {
	e.named = urls
	e.current.Store(&urls)
	for _, url := range urls {
		if slices.Contains(e.known, url) {
			continue
		}
		e.known = append(e.known, url)
		for _, i := range e.informers {
			i.start(ctx, url, func() {
				select {
				case e.changed <- struct{}{}:
				default:
				}
			})
		}
	}
}

// update retires redundant endpoints, and sets the outages and the health. It reports whether there is
// nothing to wait for.
func (e *Endpoints) update(ctx context.Context) (settled bool) {
	logger := log.From(ctx).With(zap.String("source", e.source.name))
	complete := len(e.named) > 0
	for _, url := range slices.Clone(e.known) {
		switch {
		case slices.Contains(e.named, url):
			complete = complete && e.filled(url)
		case !e.redundant(url):
			complete = false
		default:
			e.known = slices.DeleteFunc(e.known, func(x string) bool { return x == url })
			for _, i := range e.informers {
				i.retire(url)
			}
			logger.Info("stopped watching an endpoint that nothing names any more", zap.String("url", url))
		}
	}
	answering := e.outages(logger)
	if e.Err(e.required...) != nil {
		e.health.Lose()
		return false
	}
	switch {
	case complete:
		e.since = time.Time{}
		e.health.Recover()
	case e.since.IsZero():
		e.since = time.Now()
	case time.Since(e.since) > transport.MaxWait && e.health.Err() == nil:
		logger.Warn("the cache may be stale: an endpoint is gone or does not answer; if its shard was removed for good, restart the hub",
			zap.Strings("named", e.named), zap.Strings("watched", e.known))
		e.health.Lose()
	}
	return complete && answering
}

// outages sets which endpoints have one, and reports whether all answer.
func (e *Endpoints) outages(logger *zap.Logger) (answering bool) {
	before, now := *e.down.Load(), []string{}
	answering = true
	for _, url := range e.known {
		for _, i := range e.informers {
			since := i.endpoint(url).began()
			answering = answering && since.IsZero()
			if !since.IsZero() && time.Since(since) > transport.MaxWait && !slices.Contains(now, url) {
				now = append(now, url)
			}
		}
	}
	if slices.Equal(before, now) {
		return answering
	}
	e.down.Store(&now)
	for _, url := range now {
		if !slices.Contains(before, url) {
			logger.Warn("a shard does not answer: what lies on it is unavailable", zap.String("url", url))
		}
	}
	for _, url := range before {
		if !slices.Contains(now, url) {
			logger.Info("a shard answers again", zap.String("url", url))
		}
	}
	for _, f := range e.onOutage {
		f()
	}
	return answering
}

// Err is nil while what is cached of the logical clusters is followed, and what a caller is told
// otherwise.
func (e *Endpoints) Err(clusters ...string) error {
	for _, url := range *e.down.Load() {
		for _, i := range e.informers {
			l := i.endpoint(url)
			if l != nil && slices.ContainsFunc(clusters, l.hasCluster) {
				return transport.UnavailableShard()
			}
		}
	}
	return nil
}

// Outage is nil while all endpoints answer, and tells operators which do not otherwise.
func (e *Endpoints) Outage() error {
	if down := *e.down.Load(); len(down) > 0 {
		return fmt.Errorf("what lies on these shards of kcp is unavailable, because they do not answer: %s", strings.Join(down, ", "))
	}
	return nil
}

// URLs are the endpoints that are named.
func (e *Endpoints) URLs() []string { return *e.current.Load() }

// Clusters returns the logical clusters of each endpoint that has any, in no order.
func (e *Endpoints) Clusters() (clusters [][]string) {
	for _, url := range e.URLs() {
		for _, i := range e.informers {
			if l := i.endpoint(url); l != nil {
				if of := l.names(); len(of) > 0 {
					clusters = append(clusters, of)
					break
				}
			}
		}
	}
	return clusters
}

func (e *Endpoints) filled(url string) bool {
	return !slices.ContainsFunc(e.informers, func(i watched) bool { return !i.endpoint(url).isFilled() })
}

// redundant reports whether an endpoint that is not named has no objects, or shares a
// logical cluster with an endpoint that is named and filled.
func (e *Endpoints) redundant(url string) bool {
	clusters := e.clustersAt(url)
	if clusters.Len() == 0 {
		return true
	}
	return slices.ContainsFunc(e.named, func(other string) bool {
		return e.filled(other) && e.clustersAt(other).HasAny(clusters.UnsortedList()...)
	})
}

// clustersAt are the logical clusters that an endpoint has objects of.
func (e *Endpoints) clustersAt(url string) sets.Set[string] {
	clusters := sets.New[string]()
	for _, i := range e.informers {
		clusters.Insert(i.endpoint(url).names()...)
	}
	return clusters
}

// Health is whether the cache follows every endpoint that the slice names.
func (e *Endpoints) Health() *transport.Health { return e.health }

// Synced reports whether handlers have seen the first list of every informer at every
// named endpoint. It stays true for transport.MaxWait while that is not so.
func (e *Endpoints) Synced() bool { return e.health.Err() == nil }

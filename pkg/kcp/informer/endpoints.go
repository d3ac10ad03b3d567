package informer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	kcpapisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
	"github.com/faroshq/kedge-hub/pkg/log"
)

// watched is an Informer of any kind. All methods but start are for URLs that were
// started.
type watched interface {
	start(ctx context.Context, url string, full func())
	filled(url string) bool
	clusters(url string) []string
	retire(url string)
	wait()
}

// Endpoints keeps informers pointed at the virtual workspaces of one APIExport, one per
// shard, as its APIExportEndpointSlice names them. Shards may come and go.
//
// When the slice no longer names an endpoint, its objects may still exist: the slice may
// have been recreated, or name the shard by another URL. The endpoint's objects stay
// cached and watched until the slice names it again, or until it is redundant: it has no
// objects, or a named and filled endpoint has objects of one of its logical clusters. A
// logical cluster is on one shard only, so both endpoints then lead to the same shard,
// and what the other one does not serve was deleted. There is no time limit: after a
// shard was removed with objects on it, the hub stays unavailable until the shard is
// back or the hub restarts.
//
// While a named endpoint is not filled, or an endpoint that is not named is kept, the
// cache may be stale. After transport.MaxWait the Health becomes unavailable: no request
// is answered from the cache, and no controller writes by it.
type Endpoints struct {
	clients   *kcp.Clients
	cluster   string
	export    string
	informers []watched
	health    *transport.Health

	// changed receives when an informer is filled.
	changed chan struct{}
	// The fields below belong to Run. known are the endpoints that were started, and
	// named are those that the slice names.
	known, named []string
	// since is when the cache became stale; zero while it is not.
	since time.Time
}

// NewEndpoints returns the endpoints of the export in the logical cluster.
func NewEndpoints(c *kcp.Clients, cluster, export string, informers ...watched) *Endpoints {
	e := &Endpoints{clients: c, cluster: cluster, export: export, informers: informers, health: transport.NewHealth(), changed: make(chan struct{}, 1)}
	e.health.Lose()
	return e
}

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
	logger := log.From(ctx).With(zap.String("export", e.export))
	backoff := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 8, Cap: 5 * time.Second}
	delay := backoff
	for ctx.Err() == nil {
		began := time.Now()
		if err := e.watch(ctx, to); err != nil && ctx.Err() == nil {
			logger.Debug("cannot follow the export's endpoints; trying again", zap.Error(err))
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
	client := e.clients.EndpointSlices(e.cluster)
	slice, err := client.Get(ctx, e.export, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get the endpoints of %s: %w", e.export, err)
	}
	send(ctx, to, slice)
	w, err := client.Watch(ctx, metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector("metadata.name", e.export).String(),
		ResourceVersion: slice.ResourceVersion,
	})
	if err != nil {
		return fmt.Errorf("watch the endpoints of %s: %w", e.export, err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		switch slice, ok := event.Object.(*kcpapisv1alpha1.APIExportEndpointSlice); {
		case event.Type == watch.Error:
			return fmt.Errorf("watch the endpoints of %s: %v", e.export, event.Object)
		case ok && event.Type != watch.Deleted:
			send(ctx, to, slice)
		}
	}
	return nil
}

func send(ctx context.Context, to chan<- []string, slice *kcpapisv1alpha1.APIExportEndpointSlice) {
	var urls []string
	for _, endpoint := range slice.Status.APIExportEndpoints {
		urls = append(urls, endpoint.URL)
	}
	select {
	case to <- urls:
	case <-ctx.Done():
	}
}

// point starts to watch the named endpoints that are not watched yet.
func (e *Endpoints) point(ctx context.Context, urls []string) {
	e.named = urls
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

// update retires redundant endpoints and sets the health. It tells whether the cache is
// complete.
func (e *Endpoints) update(ctx context.Context) (complete bool) {
	logger := log.From(ctx).With(zap.String("export", e.export))
	complete = len(e.named) > 0
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
			logger.Info("stopped watching an endpoint that the export no longer names", zap.String("url", url))
		}
	}
	switch {
	case complete:
		e.since = time.Time{}
		e.health.Recover()
	case e.since.IsZero():
		e.since = time.Now()
	case time.Since(e.since) > transport.MaxWait && e.health.Err() == nil:
		logger.Warn("the cache may be stale: an endpoint of the export is gone or does not answer; if its shard was removed for good, restart the hub",
			zap.Strings("named", e.named), zap.Strings("watched", e.known))
		e.health.Lose()
	}
	return complete
}

func (e *Endpoints) filled(url string) bool {
	return !slices.ContainsFunc(e.informers, func(i watched) bool { return !i.filled(url) })
}

// redundant tells whether an endpoint that is not named has no objects, or shares a
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
		clusters.Insert(i.clusters(url)...)
	}
	return clusters
}

// Health is whether the cache follows every endpoint that the slice names.
func (e *Endpoints) Health() *transport.Health { return e.health }

// Synced tells whether handlers have seen the first list of every informer at every
// named endpoint. It stays true for transport.MaxWait while that is not so.
func (e *Endpoints) Synced() bool { return e.health.Err() == nil }

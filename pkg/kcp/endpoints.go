package kcp

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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/faroshq/kedge-hub/pkg/log"
)

// watched is an Informer of any kind. All but start is for URLs that were started.
type watched interface {
	start(ctx context.Context, url string, full func())
	filled(url string) bool
	clusters(url string) []string
	holds(url, cluster string) bool
	retire(url string)
	wait()
}

// Endpoints keeps informers pointed at the virtual workspaces of one APIExport,
// one per shard, as its APIExportEndpointSlice names them. Shards may come and
// go while it runs.
//
// An endpoint that is not named any more has not lost its people: the slice may have
// been made anew, or name the shard by another URL. What it holds is kept, and
// watched, until it is named again or nothing is missed without it: when it holds
// nothing itself, or when one that is named and filled has something of the same
// logical cluster. Such a cluster is on one shard only, so both are ways to that
// shard, and what the other does not have is gone. No time makes up for that: a shard
// that was taken out with people on it keeps the hub away until somebody brings it
// back, or starts the hub anew, which then knows of none of them.
//
// While one that is named is not filled, or one that is not named is kept, memory may
// be behind. That is borne with for as long as callers wait, and then the Pulse is
// lost: nothing is answered from memory, and nothing written by it.
type Endpoints struct {
	clients   *Clients
	cluster   string
	export    string
	informers []watched
	pulse     *Pulse

	// changed is sent to when an informer is filled.
	changed chan struct{}
	// What follows is Run's own. known are those that were started, and named those of
	// them that the slice has.
	known, named []string
	// since is when memory began to be behind; zero while it is not.
	since time.Time
}

// NewEndpoints returns the endpoints of the export in the logical cluster.
func NewEndpoints(c *Clients, cluster, export string, informers ...watched) *Endpoints {
	e := &Endpoints{clients: c, cluster: cluster, export: export, informers: informers, pulse: newPulse(), changed: make(chan struct{}, 1)}
	e.pulse.gone()
	return e
}

// Watch points informers at the virtual workspaces of those URLs, which do not
// change, until ctx ends, and then waits until every watch has ended.
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

// pollKept is how often it is looked whether what is kept is missed still.
const pollKept = 250 * time.Millisecond

// Run follows the endpoint slice until ctx ends and then waits until every watch
// has ended. Failures are retried with a back-off.
func (e *Endpoints) Run(ctx context.Context) {
	named := make(chan []string)
	var following sync.WaitGroup
	following.Go(func() { e.follow(ctx, named) })
	for ctx.Err() == nil {
		var again <-chan time.Time
		if !e.settle(ctx) {
			again = time.After(pollKept)
		}
		select {
		case <-ctx.Done():
		case urls := <-named:
			e.point(ctx, urls)
		case <-e.changed:
		case <-again:
		}
	}
	following.Wait()
	for _, i := range e.informers {
		i.wait()
	}
}

// follow sends what the slice names.
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

// point starts to watch what is named and not watched yet.
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

// settle retires what is not missed and tells whether memory is whole.
func (e *Endpoints) settle(ctx context.Context) bool {
	logger := log.From(ctx).With(zap.String("export", e.export))
	whole := len(e.named) > 0
	for _, url := range slices.Clone(e.known) {
		switch {
		case slices.Contains(e.named, url):
			whole = whole && e.filled(url)
		case e.missed(url):
			whole = false
		default:
			e.known = slices.DeleteFunc(e.known, func(x string) bool { return x == url })
			for _, i := range e.informers {
				i.retire(url)
			}
			logger.Info("an endpoint of the export was left", zap.String("url", url))
		}
	}
	switch {
	case whole:
		e.since = time.Time{}
		e.pulse.counted(true)
	case e.since.IsZero():
		e.since = time.Now()
	case time.Since(e.since) > Patience && e.pulse.Err() == nil:
		logger.Warn("memory may be behind: an endpoint of the export is gone, or does not answer; if its shard is gone for good, start the hub anew",
			zap.Strings("named", e.named), zap.Strings("watched", e.known))
		e.pulse.gone()
	}
	return whole
}

func (e *Endpoints) filled(url string) bool {
	return !slices.ContainsFunc(e.informers, func(i watched) bool { return !i.filled(url) })
}

// missed tells whether what an endpoint that is not named any more holds would be
// missed without it.
func (e *Endpoints) missed(url string) bool {
	holds := false
	for _, i := range e.informers {
		for _, cluster := range i.clusters(url) {
			holds = true
			if slices.ContainsFunc(e.named, func(other string) bool { return e.filled(other) && e.holds(other, cluster) }) {
				return false
			}
		}
	}
	return holds
}

func (e *Endpoints) holds(url, cluster string) bool {
	return slices.ContainsFunc(e.informers, func(i watched) bool { return i.holds(url, cluster) })
}

// Pulse is that of memory: it is there while memory follows all that the slice names.
func (e *Endpoints) Pulse() *Pulse { return e.pulse }

// Synced tells whether every informer has seen and handled what exists wherever the
// slice says, or had a moment ago.
func (e *Endpoints) Synced() bool { return e.pulse.Err() == nil }

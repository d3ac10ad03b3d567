package kcp

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	kcpapisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/faroshq/kedge-hub/pkg/log"
)

// watched is an Informer of any kind.
type watched interface {
	start(ctx context.Context, url string)
	forget(url string)
	wait()
	synced() bool
}

// Endpoints keeps informers pointed at the virtual workspaces of one APIExport,
// one per shard, as its APIExportEndpointSlice names them. Shards may come and
// go while it runs.
type Endpoints struct {
	clients   *Clients
	cluster   string
	export    string
	informers []watched

	known atomic.Bool
}

// NewEndpoints returns the endpoints of the export in the logical cluster.
func NewEndpoints(c *Clients, cluster, export string, informers ...watched) *Endpoints {
	return &Endpoints{clients: c, cluster: cluster, export: export, informers: informers}
}

// Watch points informers at the virtual workspaces of those URLs, which do not
// change, until ctx ends, and then waits until every watch has ended.
func Watch(ctx context.Context, urls []string, informers ...watched) {
	for _, i := range informers {
		for _, url := range urls {
			i.start(ctx, url)
		}
	}
	<-ctx.Done()
	for _, i := range informers {
		i.wait()
	}
}

// Run follows the endpoint slice until ctx ends and then waits until every watch
// has ended. Failures are retried with a back-off.
func (e *Endpoints) Run(ctx context.Context) {
	logger := log.From(ctx).With(zap.String("export", e.export))
	urls := map[string]bool{}
	backoff := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 8, Cap: 5 * time.Second}
	delay := backoff
	for ctx.Err() == nil {
		began := time.Now()
		if err := e.follow(ctx, urls); err != nil && ctx.Err() == nil {
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
	for _, i := range e.informers {
		i.wait()
	}
}

func (e *Endpoints) follow(ctx context.Context, urls map[string]bool) error {
	client := e.clients.EndpointSlices(e.cluster)
	slice, err := client.Get(ctx, e.export, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get the endpoints of %s: %w", e.export, err)
	}
	e.apply(ctx, slice, urls)
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
			e.apply(ctx, slice, urls)
		}
	}
	return nil
}

func (e *Endpoints) apply(ctx context.Context, slice *kcpapisv1alpha1.APIExportEndpointSlice, urls map[string]bool) {
	for _, endpoint := range slice.Status.APIExportEndpoints {
		if urls[endpoint.URL] {
			continue
		}
		urls[endpoint.URL] = true
		for _, i := range e.informers {
			i.start(ctx, endpoint.URL)
		}
	}
	for url := range urls {
		if !slices.ContainsFunc(slice.Status.APIExportEndpoints, func(x kcpapisv1alpha1.APIExportEndpoint) bool { return x.URL == url }) {
			delete(urls, url)
			for _, i := range e.informers {
				i.forget(url)
			}
		}
	}
	if len(urls) > 0 {
		e.known.Store(true)
	}
}

// Synced tells whether every informer has seen and handled what existed when it
// began.
func (e *Endpoints) Synced() bool {
	if !e.known.Load() {
		return false
	}
	for _, i := range e.informers {
		if !i.synced() {
			return false
		}
	}
	return true
}

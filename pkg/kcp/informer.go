package kcp

import (
	"context"
	"sync"
	"time"

	kcpcache "github.com/kcp-dev/apimachinery/v2/pkg/cache"
	kcpinformers "github.com/kcp-dev/apimachinery/v2/third_party/informers"
	"github.com/kcp-dev/logicalcluster/v3"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/faroshq/kedge-hub/pkg/log"
)

const byCluster = "cluster"

// ClusterOf is the logical cluster that an object came from.
func ClusterOf(o metav1.Object) string { return string(logicalcluster.From(o)) }

// Handler is told of every change of a kind, in order for each object, after
// the informer's own store has it. Handlers must not block and must not change
// what they are given. old is the zero value for an addition, new for a removal.
type Handler[T Object] func(old, new T)

// Informer holds all objects of one kind in all logical clusters: one watch per
// endpoint, never one per cluster.
type Informer[T Object] struct {
	clients  *Clients
	gvr      schema.GroupVersionResource
	selector string
	empty    func() T
	list     func() runtime.Object
	handlers []Handler[T]
	trim     func(T)

	mu        sync.RWMutex
	endpoints map[string]*endpoint
}

type endpoint struct {
	informer kcpcache.ScopeableSharedIndexInformer
	handler  cache.ResourceEventHandlerRegistration
	stop     context.CancelFunc
	done     chan struct{}
}

// NewInformer returns an informer that watches nothing until it is given an
// endpoint. labelSelector may be empty.
func NewInformer[T Object](c *Clients, gvr schema.GroupVersionResource, labelSelector string, empty func() T, list func() runtime.Object) *Informer[T] {
	return &Informer[T]{
		clients: c, gvr: gvr, selector: labelSelector, empty: empty, list: list,
		endpoints: map[string]*endpoint{},
	}
}

// Trimming returns the informer after it was told to keep only what trim leaves of
// an object.
func (i *Informer[T]) Trimming(trim func(T)) *Informer[T] {
	i.trim = trim
	return i
}

// OnChange subscribes to every change, the objects that exist already among
// them. It is called while the process is being put together, before there is an
// endpoint.
func (i *Informer[T]) OnChange(h Handler[T]) { i.handlers = append(i.handlers, h) }

// start watches the virtual workspace at url until ctx ends or stop is called.
func (i *Informer[T]) start(ctx context.Context, url string) {
	client := i.clients.rest(url+"/clusters/*", i.gvr.GroupVersion())
	options := func(o *metav1.ListOptions) { o.LabelSelector = i.selector }
	endless := &watches{}
	inf := kcpinformers.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			options(&o)
			var list runtime.Object
			err := persist(ctx, i.clients.pulse, func() error {
				list = i.list()
				return client.Get().Resource(i.gvr.Resource).VersionedParams(&o, i.clients.params).Do(ctx).Into(list)
			})
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			options(&o)
			o.Watch = true
			var began time.Time
			var w watch.Interface
			if err := persist(ctx, i.clients.pulse, func() (err error) {
				began = time.Now()
				w, err = client.Get().Resource(i.gvr.Resource).VersionedParams(&o, i.clients.params).Watch(ctx)
				return err
			}); err != nil {
				return nil, err
			}
			unchanged := i.empty()
			unchanged.SetResourceVersion(o.ResourceVersion)
			return endless.last(w, began, unchanged), nil
		},
	}, noWatchList{}), i.empty(), 0, cache.Indexers{byCluster: func(o any) ([]string, error) {
		return []string{ClusterOf(o.(T))}, nil
	}})
	logger := log.From(ctx).With(zap.String("resource", i.gvr.Resource))
	_ = inf.SetTransform(func(o any) (any, error) {
		if m, ok := o.(metav1.Object); ok {
			m.SetManagedFields(nil)
		}
		if object, ok := o.(T); ok && i.trim != nil {
			i.trim(object)
		}
		return o, nil
	})
	_ = inf.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		logger.Debug("watch ended; it is started again", zap.Error(err))
	})
	registration, err := inf.AddEventHandler(i.events())
	if err != nil {
		logger.Error("cannot watch", zap.Error(err))
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	e := &endpoint{informer: inf, handler: registration, stop: cancel, done: make(chan struct{})}
	i.mu.Lock()
	i.endpoints[url] = e
	i.mu.Unlock()
	go func() {
		defer close(e.done)
		// A virtual workspace that has just come up may not serve the kind yet, and
		// the informer's own back-off begins with most of a second.
		for !served(ctx, client, i.gvr.Resource) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pollServed):
			}
		}
		inf.RunWithContext(ctx)
	}()
}

// pollServed is how often it is asked whether a kind is served.
const pollServed = 50 * time.Millisecond

func served(ctx context.Context, client rest.Interface, resource string) bool {
	return client.Get().Resource(resource).Param("limit", "1").Do(ctx).Error() == nil
}

// noWatchList keeps reflectors on list and watch: the virtual workspaces do not
// serve the streaming list, and asking first costs a request per kind.
type noWatchList struct{}

func (noWatchList) IsWatchListSemanticsUnSupported() bool { return true }

func (i *Informer[T]) events() cache.ResourceEventHandler {
	call := func(old, new T) {
		for _, h := range i.handlers {
			h(old, new)
		}
	}
	var none T
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { call(none, o.(T)) },
		UpdateFunc: func(o, n any) {
			old, new := o.(T), n.(T)
			if old.GetResourceVersion() != new.GetResourceVersion() {
				call(old, new)
			}
		},
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			if old, ok := o.(T); ok {
				call(old, none)
			}
		},
	}
}

// forget stops watching url and tells the handlers that its objects are gone.
func (i *Informer[T]) forget(url string) {
	i.mu.Lock()
	e := i.endpoints[url]
	delete(i.endpoints, url)
	i.mu.Unlock()
	if e == nil {
		return
	}
	e.stop()
	<-e.done
	events := i.events()
	for _, o := range e.informer.GetStore().List() {
		events.OnDelete(o)
	}
}

// wait blocks until every watch that was started has ended.
func (i *Informer[T]) wait() {
	i.mu.RLock()
	defer i.mu.RUnlock()
	for _, e := range i.endpoints {
		<-e.done
	}
}

// synced tells whether everything that existed at the start has been seen and
// handled.
func (i *Informer[T]) synced() bool {
	i.mu.RLock()
	defer i.mu.RUnlock()
	for _, e := range i.endpoints {
		if !e.handler.HasSynced() {
			return false
		}
	}
	return true
}

// Get returns the object of that name in a logical cluster. It is shared: read
// only.
func (i *Informer[T]) Get(cluster, name string) (T, bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	for _, e := range i.endpoints {
		if o, ok, _ := e.informer.GetIndexer().GetByKey(kcpcache.ToClusterAwareKey(cluster, "", name)); ok {
			return o.(T), true
		}
	}
	var none T
	return none, false
}

// InCluster returns all objects in a logical cluster. They are shared: read
// only.
func (i *Informer[T]) InCluster(cluster string) []T {
	i.mu.RLock()
	defer i.mu.RUnlock()
	var out []T
	for _, e := range i.endpoints {
		objects, _ := e.informer.GetIndexer().ByIndex(byCluster, cluster)
		for _, o := range objects {
			out = append(out, o.(T))
		}
	}
	return out
}

// List returns all objects. They are shared: read only.
func (i *Informer[T]) List() []T {
	i.mu.RLock()
	defer i.mu.RUnlock()
	var out []T
	for _, e := range i.endpoints {
		for _, o := range e.informer.GetStore().List() {
			out = append(out, o.(T))
		}
	}
	return out
}

package informer

import (
	"context"
	"iter"
	"sync"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/log"
)

// Handler is told of every change of a kind, in order for each object, after
// the informer's own store has it. Handlers must not block and must not change
// what they are given. old is the zero value for an addition, new for a removal.
type Handler[T kcp.Object] func(old, new T)

// Informer holds all objects of one kind in all logical clusters: one watch per
// endpoint, never one per cluster.
type Informer[T kcp.Object] struct {
	clients  *kcp.Clients
	gvr      schema.GroupVersionResource
	selector string
	empty    func() T
	list     func() runtime.Object
	handlers []Handler[T]
	trim     func(T)
	pack     func(T) Compact[T]

	objects   overlay[T]
	mu        sync.RWMutex
	endpoints map[string]*endpoint[T]
}

type endpoint[T kcp.Object] struct {
	store *store[T]
	stop  context.CancelFunc
	done  chan struct{}
}

// New returns an informer that watches nothing until it is given an
// endpoint. labelSelector may be empty.
func New[T kcp.Object](c *kcp.Clients, gvr schema.GroupVersionResource, labelSelector string, empty func() T, list func() runtime.Object) *Informer[T] {
	return &Informer[T]{
		clients: c, gvr: gvr, selector: labelSelector, empty: empty, list: list,
		endpoints: map[string]*endpoint[T]{},
	}
}

// WithTransform returns the informer after it was told to keep only what trim leaves of
// an object.
func (i *Informer[T]) WithTransform(trim func(T)) *Informer[T] {
	i.trim = trim
	return i
}

// WithEncoding returns the informer after it was told to hold objects as pack returns
// them, where that is not nil.
func (i *Informer[T]) WithEncoding(pack func(T) Compact[T]) *Informer[T] {
	i.pack = pack
	return i
}

// OnChange subscribes to every change, the objects that exist already among
// them. It is called while the process is being put together, before there is an
// endpoint.
func (i *Informer[T]) OnChange(h Handler[T]) { i.handlers = append(i.handlers, h) }

// start watches the virtual workspace at url until ctx ends or it is retired; full is
// called when all that exists there has been told.
func (i *Informer[T]) start(ctx context.Context, url string, full func()) {
	client := i.clients.REST(url+"/clusters/*", i.gvr.GroupVersion())
	options := func(o *metav1.ListOptions) { o.LabelSelector = i.selector }
	endless := &watches{}
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			options(&o)
			var list runtime.Object
			err := persist(ctx, i.clients.Health(), func() error {
				list = i.list()
				return client.Get().Resource(i.gvr.Resource).VersionedParams(&o, i.clients.Parameters()).Do(ctx).Into(list)
			})
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			options(&o)
			o.Watch = true
			var began time.Time
			var w watch.Interface
			if err := persist(ctx, i.clients.Health(), func() (err error) {
				began = time.Now()
				w, err = client.Get().Resource(i.gvr.Resource).VersionedParams(&o, i.clients.Parameters()).Watch(ctx)
				return err
			}); err != nil {
				return nil, err
			}
			unchanged := i.empty()
			unchanged.SetResourceVersion(o.ResourceVersion)
			return endless.last(w, began, unchanged), nil
		},
	}, noWatchList{})
	logger := log.From(ctx).With(zap.String("resource", i.gvr.Resource))
	ctx, cancel := context.WithCancel(ctx)
	e := &endpoint[T]{store: newStore(&i.objects, i.prepare, i.tell, full), stop: cancel, done: make(chan struct{})}
	reflector := cache.NewReflectorWithOptions(source, i.empty(), e.store, cache.ReflectorOptions{})
	i.mu.Lock()
	i.endpoints[url] = e
	i.mu.Unlock()
	go func() {
		defer close(e.done)
		// A virtual workspace that has just come up may not serve the kind yet, and
		// the back-off below begins with most of a second.
		for !served(ctx, client, i.gvr.Resource) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pollServed):
			}
		}
		_ = relisting().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
			if err := reflector.ListAndWatchWithContext(ctx); err != nil {
				logger.Debug("watch ended; it is started again", zap.Error(err))
			}
			return false, nil
		})
	}()
}

// relisting is when a kind is listed anew whose watch has failed, as in client-go's own
// informers.
func relisting() wait.DelayFunc {
	backoff := wait.Backoff{Duration: 800 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 10, Cap: 30 * time.Second}
	return backoff.DelayWithReset(clock.RealClock{}, 2*time.Minute)
}

// prepare makes what is held of an object.
func (i *Informer[T]) prepare(o T) any {
	o.SetManagedFields(nil)
	if i.trim != nil {
		i.trim(o)
	}
	if i.pack != nil {
		if packed := i.pack(o); packed != nil {
			return packed
		}
	}
	return o
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

func (i *Informer[T]) tell(old, new T) {
	for _, h := range i.handlers {
		h(old, new)
	}
}

// retire stops watching url. Handlers are told of what no other endpoint holds, or
// holds as something else.
func (i *Informer[T]) retire(url string) {
	e := i.at(url)
	e.stop()
	<-e.done
	e.store.drop(func(_, _ string) bool { return true })
	i.objects.remove(e.store)
	i.mu.Lock()
	delete(i.endpoints, url)
	i.mu.Unlock()
}

func (i *Informer[T]) at(url string) *endpoint[T] {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.endpoints[url]
}

// clusters are the logical clusters that url has something of.
func (i *Informer[T]) clusters(url string) []string { return i.at(url).store.names() }

// holds tells whether url has something of a logical cluster.
func (i *Informer[T]) holds(url, cluster string) bool { return i.at(url).store.holds(cluster) }

// wait blocks until every watch that was started has ended.
func (i *Informer[T]) wait() {
	i.mu.RLock()
	defer i.mu.RUnlock()
	for _, e := range i.endpoints {
		<-e.done
	}
}

// filled tells whether everything that existed at url at the start has been seen and
// handled.
func (i *Informer[T]) filled(url string) bool { return i.at(url).store.filled.Load() }

// Get returns the object of that name in a logical cluster. It is shared: read
// only.
func (i *Informer[T]) Get(cluster, name string) (T, bool) { return i.objects.get(cluster, name) }

// InCluster returns all objects in a logical cluster. They are shared: read
// only.
func (i *Informer[T]) InCluster(cluster string) []T { return i.Named(cluster, anyName) }

// Named returns those objects in a logical cluster whose names are wanted. They are
// shared: read only.
func (i *Informer[T]) Named(cluster string, wanted func(name string) bool) []T {
	return i.objects.inCluster(cluster, wanted)
}

// All goes through all objects. They are shared: read only.
func (i *Informer[T]) All() iter.Seq[T] { return i.objects.each }

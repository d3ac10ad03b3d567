package informer

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/meta"
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

// Handler is called with every change of a kind, in order for each object, after the
// informer's own store has it. Handlers must not block and must not change the objects.
// old is the zero value for an addition, new for a removal.
type Handler[T kcp.Object] func(old, new T)

// Options say what an Informer watches and what it keeps. The zero value watches and keeps all.
type Options[T kcp.Object] struct {
	// Selector is a selector by labels.
	Selector string
	// Transform removes from an object what need not be cached.
	Transform func(T)
	// Encode returns the compact encoding of an object, or nil where the object itself is cached.
	Encode func(T) Compact[T]
	// OnAge is called with the time from each write in kcp to the moment at which the cache has it.
	// kcp stores whole seconds, so that the time is up to a second too long. What a list finds does
	// not count.
	OnAge func(time.Duration)
}

// Informer caches all objects of one kind in all logical clusters.
type Informer[T kcp.Object] struct {
	clients  *kcp.Clients
	options  Options[T]
	resource schema.GroupVersionResource
	handlers []Handler[T]

	objects   overlay[T]
	mu        sync.RWMutex
	endpoints map[string]*endpoint[T]
}

type endpoint[T kcp.Object] struct {
	*store[T]
	silence
	stop context.CancelFunc
	done chan struct{}
}

// New returns an informer that watches nothing until it has an endpoint.
func New[T kcp.Object](c *kcp.Clients, options Options[T]) *Informer[T] {
	return &Informer[T]{clients: c, options: options, resource: kcp.ResourceOf[T](), endpoints: map[string]*endpoint[T]{}}
}

// OnChange subscribes to every change, the first list included. It is called while the
// process is wired, before there is an endpoint.
func (i *Informer[T]) OnChange(h Handler[T]) { i.handlers = append(i.handlers, h) }

// start watches the virtual workspace at url until ctx ends or it is retired. It calls
// changed when the handlers have seen the first list, and when the endpoint ceases to answer or
// answers again.
func (i *Informer[T]) start(ctx context.Context, url string, changed func()) {
	client := i.clients.REST(url+"/clusters/*", i.resource.GroupVersion())
	logger := log.From(ctx).With(zap.String("resource", i.resource.Resource))
	ctx, cancel := context.WithCancel(ctx) //nolint:gosec // the stop of the endpoint is this cancel
	e := &endpoint[T]{store: newStore(&i.objects, i.prepare, i.notify, changed), silence: silence{changed: changed}, stop: cancel, done: make(chan struct{})}
	reflector := cache.NewReflectorWithOptions(i.source(client, &e.silence), kcp.Empty[T](), i.storeOf(e.store), cache.ReflectorOptions{})
	i.mu.Lock()
	i.endpoints[url] = e
	i.mu.Unlock()
	go func() {
		defer close(e.done)
		// A new virtual workspace may not serve the kind yet. It is polled, because the
		// back-off below begins with most of a second.
		for !i.isServed(ctx, client) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pollServed):
			}
		}
		_ = relistBackoff().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
			if err := reflector.ListAndWatchWithContext(ctx); err != nil {
				logger.Debug("watch ended; it is started again", zap.Error(err))
			}
			return false, nil
		})
	}()
}

// source lists and watches for a reflector, and retries both.
func (i *Informer[T]) source(client rest.Interface, silence *silence) cache.ListerWatcher {
	health, params := i.clients.Health(), i.clients.Parameters()
	request := func(o *metav1.ListOptions) *rest.Request {
		o.LabelSelector = i.options.Selector
		// client-go's own retries would hide for many seconds that the endpoint does not answer.
		return client.Get().MaxRetries(0).Resource(i.resource.Resource).VersionedParams(o, params)
	}
	watches := &retryWatches{}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			var list runtime.Object
			err := retry(ctx, health, silence, func() error {
				list = kcp.EmptyList[T]()
				if err := request(&o).Do(ctx).Into(list); err != nil {
					return err
				}
				return listed(list)
			})
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.Watch = true
			var began time.Time
			var w watch.Interface
			if err := retry(ctx, health, silence, func() (err error) {
				began = time.Now()
				w, err = request(&o).Watch(ctx)
				return begun(w, err)
			}); err != nil {
				return nil, err
			}
			unchanged := kcp.Empty[T]()
			unchanged.SetResourceVersion(o.ResourceVersion)
			return watches.wrap(w, began, unchanged), nil
		},
	}, noWatchList{})
}

// relistBackoff is the delay before a kind is listed again after its watch has failed,
// as in client-go's own informers.
func relistBackoff() wait.DelayFunc {
	backoff := wait.Backoff{Duration: 800 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 10, Cap: 30 * time.Second}
	return backoff.DelayWithReset(clock.RealClock{}, 2*time.Minute)
}

// prepare returns what is cached of an object: a T or a Compact[T].
func (i *Informer[T]) prepare(o T) any {
	o.SetManagedFields(nil)
	if i.options.Transform != nil {
		i.options.Transform(o)
	}
	if i.options.Encode != nil {
		if encoded := i.options.Encode(o); encoded != nil {
			return encoded
		}
	}
	return o
}

// pollServed is how often a virtual workspace is asked whether it serves the kind.
const pollServed = 50 * time.Millisecond

func (i *Informer[T]) isServed(ctx context.Context, client rest.Interface) bool {
	list := kcp.EmptyList[T]()
	err := client.Get().Resource(i.resource.Resource).Param("limit", "1").Do(ctx).Into(list)
	return err == nil && listed(list) == nil
}

// errNotServed says that a virtual workspace does not serve the kind yet.
var errNotServed = errors.New("the list has no resource version")

// listed returns an error for a list that kcp has made up: until a shard has the kind it answers
// with an empty list without a resource version, and with a watch that never brings an event.
func listed(list runtime.Object) error {
	accessor, err := meta.ListAccessor(list)
	if err == nil && accessor.GetResourceVersion() == "" {
		err = errNotServed
	}
	return err
}

// errNoAnswer says that the connection to an endpoint has ended before there was an answer.
var errNoAnswer = errors.New("the connection ended without an answer")

// begun returns an error for a watch that client-go has made up: it takes a connection that ends or
// times out before there is an answer for a watch without events.
func begun(w watch.Interface, err error) error {
	if _, ok := w.(*watch.StreamWatcher); err == nil && !ok {
		return errNoAnswer
	}
	return err
}

// noWatchList keeps reflectors on list and watch: virtual workspaces do not serve the
// streaming list, and asking for it costs a request per kind.
type noWatchList struct{}

func (noWatchList) IsWatchListSemanticsUnSupported() bool { return true }

func (i *Informer[T]) notify(old, new T) {
	for _, h := range i.handlers {
		h(old, new)
	}
}

// retire stops the watch of url. Handlers see the removal of what no other endpoint has,
// and the change of what another endpoint has in another version.
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

// endpoint is what is known of url, or nil if it was not started or is retired.
func (i *Informer[T]) endpoint(url string) link {
	if e := i.at(url); e != nil {
		return e
	}
	return nil
}

// wait waits until every watch that was started has ended.
func (i *Informer[T]) wait() {
	i.mu.RLock()
	defer i.mu.RUnlock()
	for _, e := range i.endpoints {
		<-e.done
	}
}

// nameOf is the name of an object in the cache: "name", or "namespace/name" for an object
// in a namespace.
func nameOf(o metav1.Object) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}

// Get returns an object by its name, or by "namespace/name" where it is in a namespace. It
// is shared: read only.
func (i *Informer[T]) Get(cluster, name string) (T, bool) { return i.objects.get(cluster, name) }

// InCluster returns all objects of a logical cluster. They are shared: read only.
func (i *Informer[T]) InCluster(cluster string) []T { return i.Named(cluster, anyName) }

// Named returns the objects of a logical cluster that have a wanted name. They are
// shared: read only.
func (i *Informer[T]) Named(cluster string, wanted func(name string) bool) []T {
	return i.objects.inCluster(cluster, wanted)
}

// All yields all objects. They are shared: read only.
func (i *Informer[T]) All() iter.Seq[T] { return i.objects.each }

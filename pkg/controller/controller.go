package controller

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/log"
)

const (
	// firstDelay, before a key is tried again, doubles with every failure of a key in a row, up to lastDelay.
	firstDelay = 5 * time.Millisecond
	lastDelay  = 30 * time.Second
	// panicDelay is the least that a key which panicked waits: a bug is not gone
	// in milliseconds, and each time costs a stack in the log.
	panicDelay = 500 * time.Millisecond
)

// Key names an object in a logical cluster.
type Key struct{ Cluster, Name string }

// String returns "cluster|name", as kcp writes its cluster-aware keys.
func (k Key) String() string { return k.Cluster + "|" + k.Name }

// Result is what one pass over a key asks for.
type Result struct {
	// After asks for another pass after that time; zero for none.
	After time.Duration
}

// Func reconciles what a key names. An error brings the key back with a growing
// delay.
type Func func(ctx context.Context, key Key) (Result, error)

// ErrRetry is an expected failure, such as a conflict with another writer: the
// key comes back, and nothing is logged as an error.
var ErrRetry = errors.New("changed meanwhile")

// Options say how a Controller works.
type Options struct {
	// Name is the controller's name in logs and metrics.
	Name string
	// Workers is how many keys are worked on at once; 0 means 8.
	Workers int
	// Resync brings every key of All back that often, for what no event tells of;
	// 0 means ten minutes.
	Resync time.Duration
	// All lists every key; nil for none.
	All func() []Key
	// Clock is the time that delays and the resync go by; nil means the real one.
	Clock clock.WithTicker
	// OnEnqueue is called with the controller's name for every key that is enqueued,
	// also while the controller does not run; nil for none.
	OnEnqueue func(controller string, key Key)
}

// Controller works a queue of keys off. It can be run again after Run returned,
// as a replica that becomes leader again does.
type Controller struct {
	options Options
	work    Func
	metrics series

	mu    sync.Mutex
	queue queue
}

type queue = workqueue.TypedDelayingInterface[Key]

// New returns a controller that calls work for every key that is enqueued.
func New(options Options, metrics *Metrics, work Func) *Controller {
	if options.Workers == 0 {
		options.Workers = 8
	}
	if options.Resync == 0 {
		options.Resync = 10 * time.Minute
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	c := &Controller{options: options, work: work}
	c.metrics = metrics.of(options.Name, c.waiting)
	return c
}

// Enqueue asks for a pass over the key. It never blocks, and does nothing while
// the controller is not running: Run begins with all keys.
func (c *Controller) Enqueue(key Key) { c.EnqueueAfter(key, 0) }

// EnqueueAfter asks for a pass over the key after that time. Of several such
// requests for a key the earliest counts.
func (c *Controller) EnqueueAfter(key Key, after time.Duration) {
	if c.options.OnEnqueue != nil {
		c.options.OnEnqueue(c.options.Name, key)
	}
	if queue := c.running(); queue != nil {
		queue.AddAfter(key, after)
	}
}

// running is the queue of the current run, or of the last one, which takes
// nothing more; nil before the first.
func (c *Controller) running() queue {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queue
}

func (c *Controller) use(queue queue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = queue
}

// waiting is how many keys are due and have no worker yet.
func (c *Controller) waiting() int {
	if queue := c.running(); queue != nil {
		return queue.Len()
	}
	return 0
}

// Run works until ctx ends and then until no worker works any more.
func (c *Controller) Run(ctx context.Context) {
	queue := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[Key]{Clock: c.options.Clock})
	delays := workqueue.NewTypedItemExponentialFailureRateLimiter[Key](firstDelay, lastDelay)
	c.use(queue)
	c.enqueueAll()

	ctx = log.Into(ctx, log.From(ctx).With(zap.String("controller", c.options.Name)))
	var workers sync.WaitGroup
	for range c.options.Workers {
		workers.Go(func() {
			for c.next(ctx, queue, delays) {
			}
		})
	}
	resync := c.options.Clock.NewTicker(c.options.Resync)
	defer resync.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-resync.C():
			c.enqueueAll()
		}
	}
	queue.ShutDown()
	workers.Wait()
}

func (c *Controller) enqueueAll() {
	if c.options.All == nil {
		return
	}
	for _, key := range c.options.All() {
		c.Enqueue(key)
	}
}

func (c *Controller) next(ctx context.Context, queue queue, delays workqueue.TypedRateLimiter[Key]) bool {
	key, shutdown := queue.Get()
	if shutdown {
		return false
	}
	defer queue.Done(key)
	if ctx.Err() != nil {
		return true
	}
	logger := log.From(ctx).With(zap.String("cluster", key.Cluster), zap.String("name", key.Name))
	began := c.options.Clock.Now()
	result, err := c.pass(log.Into(ctx, logger), key)
	took := c.options.Clock.Since(began)
	c.metrics.duration.Observe(took.Seconds())
	logger.Debug("pass", zap.Duration("took", took), zap.Duration("after", result.After))
	if err == nil {
		delays.Forget(key)
		if result.After > 0 {
			queue.AddAfter(key, result.After)
		}
		return true
	}
	var bug *panicError
	switch {
	case errors.As(err, &bug):
		// It was logged with its stack; the next run begins with all keys.
		c.metrics.errors.Inc()
	case ctx.Err() != nil:
		return true
	case errors.Is(err, ErrRetry):
		logger.Debug("reconcile is repeated", zap.Error(err))
	default:
		c.metrics.errors.Inc()
		logger.Warn("reconcile failed; it is tried again", zap.Error(err), zap.Int("retries", delays.NumRequeues(key)))
	}
	c.metrics.retries.Inc()
	delay := delays.When(key)
	if bug != nil {
		delay = max(delay, panicDelay)
	}
	queue.AddAfter(key, delay)
	return true
}

func (c *Controller) pass(ctx context.Context, key Key) (result Result, err error) {
	defer contain(ctx, &err)
	return c.work(ctx, key)
}

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
	// firstDelay is the delay before a failed key is tried again. It doubles with every
	// further failure, up to lastDelay.
	firstDelay = 5 * time.Millisecond
	lastDelay  = 30 * time.Second
	// lastRetryDelay is the maximum delay after ErrRetry: another writer was first, which
	// says nothing about the next attempt, and a request may wait for the result.
	lastRetryDelay = time.Second
	// panicDelay is the minimum delay after a panic: the bug stays, and every panic
	// writes a stack to the log.
	panicDelay = 500 * time.Millisecond
)

// Key names an object in a logical cluster.
type Key struct{ Cluster, Name string }

// String returns "cluster|name", as kcp writes its cluster-aware keys.
func (k Key) String() string { return k.Cluster + "|" + k.Name }

// Result is the outcome of one step, or of one pass over a key.
type Result struct {
	// Message tells people what is still missing; empty if nothing is. Only a step sets
	// it.
	Message string
	// Note is the message of the step's condition while there is no Message.
	Note string
	// Reason is the reason of the step's condition while there is a Message; empty means
	// ReasonWaiting.
	Reason string
	// RequeueAfter asks for another pass after that time; zero asks for none.
	RequeueAfter time.Duration
	// Stop ends the pass after this step.
	Stop bool
}

// Func reconciles the object of a key. After an error the key is enqueued again, with
// a delay that grows from failure to failure.
type Func func(ctx context.Context, key Key) (Result, error)

// ErrRetry is an expected failure, such as a conflict with another writer. The key is
// enqueued again and no error is logged.
var ErrRetry = errors.New("changed meanwhile")

// Options configure a Controller.
type Options struct {
	// Name is the controller's name in logs and metrics.
	Name string
	// Workers is the number of keys that are reconciled at once; 0 means 8.
	Workers int
	// Resync is the period after which every key of All is enqueued again, to repair what
	// no event reports; 0 means ten minutes.
	Resync time.Duration
	// All lists every key; nil means that the controller has no initial keys.
	All func() []Key
	// Clock measures delays and the resync; nil means the real clock.
	Clock clock.WithTicker
	// OnEnqueue is called with the controller's name for every key that is enqueued,
	// also while the controller does not run; nil for none.
	OnEnqueue func(controller string, key Key)
}

// Controller reconciles the keys of a queue. Run may be called again after it
// returned, as a replica does that becomes leader a second time.
type Controller struct {
	options Options
	work    Func
	metrics series

	mu    sync.Mutex
	queue *queue
}

// New returns a controller that calls work for every enqueued key.
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

// Name is the controller's name in logs and metrics.
func (c *Controller) Name() string { return c.options.Name }

// Enqueue asks for a pass over the key. It never blocks. While the controller does not
// run it does nothing, because Run starts with all keys.
func (c *Controller) Enqueue(key Key) { c.EnqueueAfter(key, 0) }

// EnqueueAfter asks for a pass over the key after that time. The earliest of several
// requests for a key counts.
func (c *Controller) EnqueueAfter(key Key, after time.Duration) {
	if c.options.OnEnqueue != nil {
		c.options.OnEnqueue(c.options.Name, key)
	}
	if queue := c.running(); queue != nil {
		queue.AddAfter(key, after)
	}
}

// EnqueueUrgent is Enqueue for a key of which rights end: it goes ahead of the others, until a pass over
// it succeeds.
func (c *Controller) EnqueueUrgent(key Key) { c.EnqueueFor("", key, true) }

// EnqueueFor is Enqueue, or EnqueueUrgent, for a key that an owner has enqueued. The keys of owners take
// turns; those without one belong to their logical cluster.
func (c *Controller) EnqueueFor(owner string, key Key, urgent bool) {
	if queue := c.running(); queue != nil {
		queue.keys.mark(key, mark{owner, urgent})
	}
	c.Enqueue(key)
}

// running returns the queue of the current run, or of the last one, which accepts no
// keys any more. It returns nil before the first run.
func (c *Controller) running() *queue {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queue
}

func (c *Controller) use(queue *queue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = queue
}

// waiting returns the number of keys that are due and have no worker yet.
func (c *Controller) waiting() int {
	if queue := c.running(); queue != nil {
		return queue.Len()
	}
	return 0
}

// Run reconciles until ctx ends and returns after the last worker has stopped.
func (c *Controller) Run(ctx context.Context) {
	queue := newQueue(c.options.Clock)
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

func (c *Controller) next(ctx context.Context, queue *queue, delays workqueue.TypedRateLimiter[Key]) bool {
	key, shutdown := queue.Get()
	if shutdown {
		return false
	}
	defer queue.Done(key)
	urgent := queue.keys.tookUrgent(key)
	if ctx.Err() != nil {
		return true
	}
	logger := log.From(ctx).With(zap.String("cluster", key.Cluster), zap.String("name", key.Name))
	began := c.options.Clock.Now()
	traced, end := c.metrics.tracer.Reconcile(log.Into(ctx, logger), c.options.Name, key.Cluster, key.Name)
	result, err := c.pass(traced, key)
	took := c.options.Clock.Since(began)
	end(outcome(ctx, result, err))
	c.metrics.duration.Observe(took.Seconds())
	logger.Debug("pass", zap.Duration("took", took), zap.Duration("requeueAfter", result.RequeueAfter))
	if err == nil {
		delays.Forget(key)
		if result.RequeueAfter > 0 {
			queue.AddAfter(key, result.RequeueAfter)
		}
		return true
	}
	var bug *panicError
	switch {
	case errors.As(err, &bug):
		// The panic is logged with its stack already.
		c.metrics.errors.Inc()
	case ctx.Err() != nil:
		return true
	case errors.Is(err, ErrRetry):
		logger.Debug("reconcile is retried", zap.Error(err))
	default:
		c.metrics.errors.Inc()
		logger.Warn("reconcile failed and is retried", zap.Error(err), zap.Int("retries", delays.NumRequeues(key)))
	}
	c.metrics.retries.Inc()
	delay := delays.When(key)
	switch {
	case bug != nil:
		delay = max(delay, panicDelay)
	case errors.Is(err, ErrRetry):
		delay = min(delay, lastRetryDelay)
	}
	if urgent {
		queue.keys.mark(key, mark{urgent: true})
	}
	queue.AddAfter(key, delay)
	return true
}

// outcome says in one word what came of a pass, and whether it failed.
func outcome(ctx context.Context, result Result, err error) (word string, failed bool) {
	switch {
	case err == nil && result.RequeueAfter > 0:
		return "requeued", false
	case err == nil:
		return "done", false
	case ctx.Err() != nil:
		return "stopped", false
	case errors.Is(err, ErrRetry):
		return "retried", false
	}
	return "failed", true
}

func (c *Controller) pass(ctx context.Context, key Key) (result Result, err error) {
	defer contain(ctx, &err)
	return c.work(ctx, key)
}

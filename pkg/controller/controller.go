package controller

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/client-go/util/workqueue"

	"github.com/faroshq/kedge-hub/pkg/log"
)

// Key names an object in a logical cluster.
type Key struct{ Cluster, Name string }

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
}

// Metrics of all controllers of a process.
type Metrics struct {
	depth    *prometheus.GaugeVec
	retries  *prometheus.CounterVec
	errors   *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// NewMetrics registers the metrics of the controllers.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	label := []string{"controller"}
	m := &Metrics{
		depth:    prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "kedge_controller_queue_depth", Help: "Keys that wait for a worker."}, label),
		retries:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kedge_controller_retries_total", Help: "Keys that came back after a failure or a conflict."}, label),
		errors:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kedge_controller_errors_total", Help: "Passes that failed."}, label),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "kedge_controller_reconcile_duration_seconds", Help: "How long a pass took.", Buckets: prometheus.ExponentialBuckets(0.001, 4, 8)}, label),
	}
	for _, c := range []prometheus.Collector{m.depth, m.retries, m.errors, m.duration} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register controller metrics: %w", err)
		}
	}
	return m, nil
}

// Controller works a queue of keys off. It can be run again after Run returned,
// as a replica that becomes leader again does.
type Controller struct {
	options Options
	work    Func
	metrics *Metrics

	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[Key]
}

// New returns a controller that calls work for every key that is enqueued.
func New(options Options, metrics *Metrics, work Func) *Controller {
	if options.Workers == 0 {
		options.Workers = 8
	}
	if options.Resync == 0 {
		options.Resync = 10 * time.Minute
	}
	return &Controller{options: options, work: work, metrics: metrics}
}

// Enqueue asks for a pass over the key. It never blocks, and does nothing while
// the controller is not running: Run begins with all keys.
func (c *Controller) Enqueue(key Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queue != nil {
		c.queue.Add(key)
	}
}

// Run works until ctx ends and then until no worker works any more.
func (c *Controller) Run(ctx context.Context) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[Key](5*time.Millisecond, 30*time.Second))
	c.mu.Lock()
	c.queue = queue
	c.mu.Unlock()
	c.enqueueAll()

	ctx = log.Into(ctx, log.From(ctx).With(zap.String("controller", c.options.Name)))
	var workers sync.WaitGroup
	for range c.options.Workers {
		workers.Go(func() {
			for c.next(ctx, queue) {
			}
		})
	}
	ticker := time.NewTicker(c.options.Resync)
	defer ticker.Stop()
	depth := time.NewTicker(time.Second)
	defer depth.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
			c.enqueueAll()
		case <-depth.C:
			c.metrics.depth.WithLabelValues(c.options.Name).Set(float64(queue.Len()))
		}
	}
	c.mu.Lock()
	c.queue = nil
	c.mu.Unlock()
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

func (c *Controller) next(ctx context.Context, queue workqueue.TypedRateLimitingInterface[Key]) bool {
	key, shutdown := queue.Get()
	if shutdown {
		return false
	}
	defer queue.Done(key)
	if ctx.Err() != nil {
		return true
	}
	logger := log.From(ctx).With(zap.String("cluster", key.Cluster), zap.String("name", key.Name))
	began := time.Now()
	result, err := c.pass(log.Into(ctx, logger), key)
	c.metrics.duration.WithLabelValues(c.options.Name).Observe(time.Since(began).Seconds())
	switch {
	case ctx.Err() != nil:
	case err != nil:
		if !errors.Is(err, ErrRetry) {
			c.metrics.errors.WithLabelValues(c.options.Name).Inc()
			logger.Warn("reconcile failed; it is tried again", zap.Error(err), zap.Int("retries", queue.NumRequeues(key)))
		}
		c.metrics.retries.WithLabelValues(c.options.Name).Inc()
		queue.AddRateLimited(key)
	default:
		queue.Forget(key)
		if result.After > 0 {
			queue.AddAfter(key, result.After)
		}
	}
	return true
}

// pass contains a panic in one key, so that it does not end the work on all the
// others.
func (c *Controller) pass(ctx context.Context, key Key) (result Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			log.From(ctx).Error("reconcile panicked", zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return c.work(ctx, key)
}

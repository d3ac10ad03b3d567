package controller

import (
	"fmt"
	"maps"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/faroshq/kedge-hub/pkg/tracing"
)

// Metrics are the metrics of all controllers of a process.
type Metrics struct {
	depth    *depth
	retries  *prometheus.CounterVec
	errors   *prometheus.CounterVec
	duration *prometheus.HistogramVec
	tracer   *tracing.Tracer
}

// NewMetrics registers the metrics of the controllers.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	label := []string{"controller"}
	m := &Metrics{
		depth: &depth{
			desc: prometheus.NewDesc("kedge_controller_queue_depth", "Keys in the queue of a controller that wait for a worker.", label, nil),
			of:   map[string]func() int{},
		},
		retries:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kedge_controller_retries_total", Help: "Reconciliations that were repeated after an error or a conflict, by controller."}, label),
		errors:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kedge_controller_errors_total", Help: "Reconciliations that failed, by controller."}, label),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "kedge_controller_reconcile_duration_seconds", Help: "Time in seconds of one reconciliation, by controller.", Buckets: prometheus.ExponentialBuckets(0.001, 4, 8)}, label),
	}
	for _, c := range []prometheus.Collector{m.depth, m.retries, m.errors, m.duration} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register controller metrics: %w", err)
		}
	}
	return m, nil
}

// Traced returns the same metrics for controllers whose passes have spans. The tracer may be nil.
func (m *Metrics) Traced(tracer *tracing.Tracer) *Metrics {
	traced := *m
	traced.tracer = tracer
	return &traced
}

// series are the metrics of one controller.
type series struct {
	retries, errors prometheus.Counter
	duration        prometheus.Observer
	tracer          *tracing.Tracer
}

// of creates the series of a controller, so that they exist with the value zero from the start.
func (m *Metrics) of(controller string, waiting func() int) series {
	m.depth.mu.Lock()
	defer m.depth.mu.Unlock()
	m.depth.of[controller] = waiting
	return series{
		retries:  m.retries.WithLabelValues(controller),
		errors:   m.errors.WithLabelValues(controller),
		duration: m.duration.WithLabelValues(controller),
		tracer:   m.tracer,
	}
}

// depth is a collector that reads the queues at the time of the scrape. A stored value would be
// outdated while all workers are busy, which is when it matters.
type depth struct {
	desc *prometheus.Desc

	mu sync.Mutex
	of map[string]func() int
}

// Describe implements prometheus.Collector.
func (d *depth) Describe(out chan<- *prometheus.Desc) { out <- d.desc }

// Collect implements prometheus.Collector.
func (d *depth) Collect(out chan<- prometheus.Metric) {
	d.mu.Lock()
	of := maps.Clone(d.of)
	d.mu.Unlock()
	for controller, waiting := range of {
		out <- prometheus.MustNewConstMetric(d.desc, prometheus.GaugeValue, float64(waiting()), controller)
	}
}

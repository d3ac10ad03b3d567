package views

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are those of the caches.
type metrics struct {
	views          map[string]view
	objects, bytes *prometheus.Desc
	tenant         *prometheus.Desc
	lag            *prometheus.HistogramVec
	wait           prometheus.Histogram
	expired        prometheus.Counter
}

// view is a Kind, as metrics read it.
type view interface {
	objects() int
	Usage() (objects int, bytes float64)
	Largest() (bytes float64)
	ofTenants() bool
}

func (k *Kind[T]) objects() int { return int(k.count.Load()) }

// ofTenants reports whether the objects are in the logical clusters of tenants, and not all in one of the hub.
func (k *Kind[T]) ofTenants() bool { return k.belongs == nil }

func newMetrics() metrics {
	label := []string{"view"}
	return metrics{
		views:   map[string]view{},
		objects: prometheus.NewDesc("kedge_views_objects", "Objects in the caches, by view.", label, nil),
		bytes:   prometheus.NewDesc("kedge_views_bytes", "Estimate of the memory of the objects in the caches in bytes, by view.", label, nil),
		tenant: prometheus.NewDesc("kedge_views_tenant_bytes",
			"Estimate of the memory in bytes of the objects in the caches of one logical cluster of a tenant: the most, by view.", label, nil),
		lag: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "kedge_views_lag_seconds",
			Help:    "Time in seconds from a write in kcp to the moment that the cache has it, up to a second too long, by view.",
			Buckets: []float64{1, 2, 3, 5, 10, 30, 60},
		}, label),
		wait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "kedge_views_wait_seconds",
			Help:    "Time in seconds that a request waited for the caches to show its write.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}),
		expired: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kedge_memberships_expired_total", Help: "Memberships that ended by time, as this replica saw it.",
		}),
	}
}

func (m metrics) add(name string, v view) { m.views[name] = v }

// age observes the age of what a watch delivers.
func (m metrics) age(name string) func(time.Duration) {
	observer := m.lag.WithLabelValues(name)
	return func(age time.Duration) { observer.Observe(age.Seconds()) }
}

func (m metrics) register(r prometheus.Registerer) error {
	return errors.Join(r.Register(m.wait), r.Register(m.lag), r.Register(m.expired), r.Register(m))
}

// Describe implements prometheus.Collector.
func (m metrics) Describe(to chan<- *prometheus.Desc) {
	to <- m.objects
	to <- m.bytes
	to <- m.tenant
}

// Collect implements prometheus.Collector.
func (m metrics) Collect(to chan<- prometheus.Metric) {
	for name, v := range m.views {
		_, bytes := v.Usage()
		to <- prometheus.MustNewConstMetric(m.objects, prometheus.GaugeValue, float64(v.objects()), name)
		to <- prometheus.MustNewConstMetric(m.bytes, prometheus.GaugeValue, bytes, name)
		if v.ofTenants() {
			to <- prometheus.MustNewConstMetric(m.tenant, prometheus.GaugeValue, v.Largest(), name)
		}
	}
}

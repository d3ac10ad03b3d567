package health

import "github.com/prometheus/client_golang/prometheus"

// Register registers kedge_ready and kedge_check_ok.
func (h *Checks) Register(r prometheus.Registerer) error {
	return r.Register(collector{
		checks: h,
		ready:  prometheus.NewDesc("kedge_ready", "1 if /readyz succeeds, else 0.", nil, nil),
		ok:     prometheus.NewDesc("kedge_check_ok", "1 if a check of /readyz?verbose succeeds, else 0, by check.", []string{"check"}, nil),
	})
}

type collector struct {
	checks    *Checks
	ready, ok *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	to <- c.ready
	to <- c.ok
}

// Collect implements prometheus.Collector.
func (c collector) Collect(to chan<- prometheus.Metric) {
	ready := true
	for _, check := range c.checks.checks() {
		ready = ready && (check.why == "" || check.lenient)
		to <- prometheus.MustNewConstMetric(c.ok, prometheus.GaugeValue, value(check.why == ""), check.name)
	}
	to <- prometheus.MustNewConstMetric(c.ready, prometheus.GaugeValue, value(ready))
}

func value(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}

package storage

import "github.com/prometheus/client_golang/prometheus"

// collector shows the last measurement of each store.
type collector struct{ monitor *Monitor }

func (*collector) descs() (ratio, floor *prometheus.Desc) {
	return prometheus.NewDesc("kedge_storage_used_ratio",
			"Share of a store of the embedded kcp that is used, by store: etcd, whose limit is --etcd-quota, or disk.", []string{"store"}, nil),
		prometheus.NewDesc("kedge_storage_floor",
			"What a store of the embedded kcp refuses, by store: 0 nothing, 1 growth, 2 all but endings, 3 everything.", []string{"store"}, nil)
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	ratio, floor := c.descs()
	to <- ratio
	to <- floor
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	now := c.monitor.now.Load()
	ratio, floor := c.descs()
	for store, u := range now.usage {
		to <- prometheus.MustNewConstMetric(ratio, prometheus.GaugeValue, u.share(), store)
		to <- prometheus.MustNewConstMetric(floor, prometheus.GaugeValue, float64(now.levels[store]), store)
	}
}

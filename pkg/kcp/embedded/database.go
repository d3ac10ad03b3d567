package embedded

import "github.com/prometheus/client_golang/prometheus"

// database shows the size of etcd's database beside its quota. etcd registers its own metrics
// globally, where the hub does not serve them.
type database struct {
	etcd              prometheus.Gatherer
	total, used, most *prometheus.Desc
}

func newDatabase(etcd prometheus.Gatherer) *database {
	return &database{
		etcd:  etcd,
		total: prometheus.NewDesc("kedge_etcd_size_bytes", "Size of the database file of the embedded etcd in bytes, which counts against the quota.", nil, nil),
		used:  prometheus.NewDesc("kedge_etcd_used_bytes", "Bytes of the database of the embedded etcd that are in use; a defragmentation frees the others.", nil, nil),
		most:  prometheus.NewDesc("kedge_etcd_quota_bytes", "Size of the database in bytes at which the embedded etcd refuses writes.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (d *database) Describe(to chan<- *prometheus.Desc) {
	to <- d.total
	to <- d.used
	to <- d.most
}

// Collect implements prometheus.Collector. Until etcd has started there is nothing to collect.
func (d *database) Collect(to chan<- prometheus.Metric) {
	families, err := d.etcd.Gather()
	if err != nil && len(families) == 0 {
		to <- prometheus.NewInvalidMetric(d.total, err)
		return
	}
	of := map[string]*prometheus.Desc{
		"etcd_mvcc_db_total_size_in_bytes": d.total, "etcd_mvcc_db_total_size_in_use_in_bytes": d.used, "etcd_server_quota_backend_bytes": d.most,
	}
	for _, family := range families {
		desc, ok := of[family.GetName()]
		if !ok {
			continue
		}
		if bytes := family.GetMetric()[0].GetGauge().GetValue(); bytes > 0 {
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, bytes)
		}
	}
}

package embedded

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

func TestDatabase_showsWhatEtcdSays(t *testing.T) {
	t.Parallel()
	etcd := prometheus.NewRegistry()
	d := newDatabase(etcd)
	require.Zero(t, testutil.CollectAndCount(d), "etcd has not started")
	for name, bytes := range map[string]float64{
		"etcd_mvcc_db_total_size_in_bytes": 2000, "etcd_mvcc_db_total_size_in_use_in_bytes": 1500, "etcd_server_quota_backend_bytes": 8000,
	} {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name})
		g.Set(bytes)
		etcd.MustRegister(g)
	}
	require.NoError(t, testutil.CollectAndCompare(d, strings.NewReader(`
# HELP kedge_etcd_quota_bytes Size of the database in bytes at which the embedded etcd refuses writes.
# TYPE kedge_etcd_quota_bytes gauge
kedge_etcd_quota_bytes 8000
# HELP kedge_etcd_size_bytes Size of the database file of the embedded etcd in bytes, which counts against the quota.
# TYPE kedge_etcd_size_bytes gauge
kedge_etcd_size_bytes 2000
# HELP kedge_etcd_used_bytes Bytes of the database of the embedded etcd that are in use; a defragmentation frees the others.
# TYPE kedge_etcd_used_bytes gauge
kedge_etcd_used_bytes 1500
`)))
}

// The names are those of the etcd that is linked.
func TestDatabase_namesMetricsOfEtcd(t *testing.T) {
	t.Parallel()
	families, err := prometheus.DefaultGatherer.Gather()
	require.NoError(t, err)
	found := map[string]bool{}
	for _, f := range families {
		found[f.GetName()] = true
	}
	for _, name := range []string{"etcd_mvcc_db_total_size_in_bytes", "etcd_mvcc_db_total_size_in_use_in_bytes", "etcd_server_quota_backend_bytes"} {
		require.True(t, found[name], name)
	}
}

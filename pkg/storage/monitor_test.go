package storage

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/log"
)

func newMonitor(t *testing.T) (*Monitor, *prometheus.Registry) {
	t.Helper()
	r := prometheus.NewRegistry()
	m, err := NewMonitor(r)
	require.NoError(t, err)
	return m, r
}

func TestMonitor_levelsAndWhatTheyAdmit(t *testing.T) {
	t.Parallel()
	core, lines := observer.New(zap.InfoLevel)
	ctx := log.Into(t.Context(), zap.New(core))
	m, _ := newMonitor(t)
	require.NoError(t, m.Admit(Growth), "before the first measurement")
	for i, c := range []struct {
		store string
		used  int64
		spent bool
		want  Level
		lines int
	}{
		{EtcdStore, 79, false, Open, 0},
		{EtcdStore, 80, false, NoGrowth, 1},
		{EtcdStore, 79, false, NoGrowth, 1},
		{EtcdStore, 77, false, Open, 2},
		{EtcdStore, 95, false, EndingsOnly, 3},
		{EtcdStore, 93, false, EndingsOnly, 3},
		{EtcdStore, 92, false, NoGrowth, 4},
		{DiskStore, 96, false, EndingsOnly, 5},
		{EtcdStore, 10, false, EndingsOnly, 6},
		{DiskStore, 100, true, Closed, 7},
		{EtcdStore, 85, false, Closed, 8},
		{DiskStore, 10, false, NoGrowth, 9},
		{EtcdStore, 10, false, Open, 10},
	} {
		m.Measured(ctx, c.store, Usage{Used: c.used, Limit: 100, Spent: c.spent})
		require.Equal(t, c.want, m.Level(), "%d", i)
		require.Equal(t, c.lines, lines.Len(), "%d: one line for each change of a store", i)
		for w, most := range map[Write]Level{Growth: Open, Change: NoGrowth, Ending: EndingsOnly} {
			require.Equal(t, c.want <= most, m.Admit(w) == nil, "%d: %s", i, w)
		}
		_, err := m.WriteRight()
		require.Equal(t, c.want == Closed, err != nil, "%d", i)
		require.Equal(t, c.want >= EndingsOnly, m.AdmitCreation() != nil, "%d", i)
	}
}

func TestMonitor_etcdThatRefusesWritesAdmitsEndingsOnly(t *testing.T) {
	t.Parallel()
	m, _ := newMonitor(t)
	m.Measured(t.Context(), EtcdStore, Usage{Used: 10, Limit: 100, Refuses: true})
	require.Equal(t, EndingsOnly, m.Level())
	require.ErrorContains(t, m.Err(EtcdStore), "only what takes rights or space away is written")
	require.NoError(t, m.Err(DiskStore))
	m.Measured(t.Context(), EtcdStore, Usage{Used: 10, Limit: 100})
	require.NoError(t, m.Err(EtcdStore))
}

func TestMonitor_refusalsSayWhatIsUsedAndWhatToDo(t *testing.T) {
	t.Parallel()
	m, _ := newMonitor(t)
	m.Measured(t.Context(), DiskStore, Usage{Used: 83, Limit: 100})
	var told *errs.Error
	require.ErrorAs(t, m.Admit(Growth), &told)
	require.Equal(t, errs.InsufficientStorage, told.Code)
	require.Zero(t, told.RetryAfter, "clients would repeat it by themselves")
	require.Equal(t, "83% of the hub's disk is used, and nothing new or larger is written until it is less than 78%; "+
		"delete what you do not need, and tell the operator of the hub", told.Message)
	m.Measured(t.Context(), DiskStore, Usage{Used: 100, Limit: 100, Spent: true})
	require.ErrorAs(t, m.Admit(Ending), &told)
	require.Equal(t, errs.Unavailable, told.Code)
	require.Equal(t, retryClosed, told.RetryAfter)
}

func TestMonitor_countsTheLastPartOfALargeDisk(t *testing.T) {
	t.Parallel()
	const gib = int64(1) << 30
	for _, c := range []struct {
		free, size int64
		reserved   bool
		want       Level
	}{
		{free: 3 * gib, size: 1000 * gib, want: Open},
		{free: 2 * gib, size: 1000 * gib, want: NoGrowth},
		{free: gib / 2, size: 1000 * gib, want: EndingsOnly},
		{free: 1000 * gib, size: 1000 * gib, want: Open},
		{free: gib, size: 4 * gib, want: Open},
		{free: gib / 2, size: 4 * gib, want: NoGrowth},
		{free: 0, size: 4 * gib, reserved: true, want: EndingsOnly},
		{free: tight - 1, size: 4 * gib, want: Closed},
	} {
		m, _ := newMonitor(t)
		m.Reserved(c.reserved)
		m.Measured(t.Context(), DiskStore, m.disk(c.free, c.size))
		require.Equal(t, c.want, m.Level(), "%d of %d", c.free, c.size)
	}
}

func TestMonitor_metrics(t *testing.T) {
	t.Parallel()
	m, r := newMonitor(t)
	m.Measured(t.Context(), EtcdStore, Usage{Used: 85, Limit: 100})
	m.Measured(t.Context(), DiskStore, Usage{Used: 50, Limit: 100})
	require.Error(t, m.Admit(Growth))
	require.NoError(t, testutil.GatherAndCompare(r, strings.NewReader(`
# HELP kedge_storage_floor What a store of the embedded kcp refuses, by store: 0 nothing, 1 growth, 2 all but endings, 3 everything.
# TYPE kedge_storage_floor gauge
kedge_storage_floor{store="disk"} 0
kedge_storage_floor{store="etcd"} 1
# HELP kedge_storage_refused_total Writes refused because the store of the embedded kcp is full, by what they are: growth, change or ending.
# TYPE kedge_storage_refused_total counter
kedge_storage_refused_total{write="change"} 0
kedge_storage_refused_total{write="ending"} 0
kedge_storage_refused_total{write="growth"} 1
# HELP kedge_storage_used_ratio Share of a store of the embedded kcp that is used, by store: etcd, whose limit is --etcd-quota, or disk.
# TYPE kedge_storage_used_ratio gauge
kedge_storage_used_ratio{store="disk"} 0.5
kedge_storage_used_ratio{store="etcd"} 0.85
`)))
}

func TestMonitor_stopsControllersOnlyWhenNothingIsWritten(t *testing.T) {
	t.Parallel()
	m, _ := newMonitor(t)
	at := func(used int64, spent bool) {
		m.Measured(t.Context(), DiskStore, Usage{Used: used, Limit: 100, Spent: spent})
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	began, ended, returned := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(returned)
		m.RunWhileOpen(ctx, func(ctx context.Context) {
			began <- struct{}{}
			<-ctx.Done()
			ended <- struct{}{}
		})
	}()
	<-began
	at(85, false)
	at(96, false)
	select {
	case <-ended:
		require.Fail(t, "endings need the controllers")
	case <-time.After(50 * time.Millisecond):
	}
	at(100, true)
	<-ended
	at(100, true)
	select {
	case <-began:
		require.Fail(t, "it began again without room")
	case <-time.After(50 * time.Millisecond):
	}
	at(96, false)
	<-began
	stop()
	<-ended
	<-returned
	at(100, true)
	m.RunWhileOpen(ctx, func(context.Context) { require.Fail(t, "its context has ended") })
}

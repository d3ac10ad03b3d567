package server

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/log"
)

// measured is a disk with as much room as it is told.
type measured struct {
	*dataDisk
	ctx     context.Context
	metrics *prometheus.Registry
	lines   *observer.ObservedLogs
}

func newMeasured(t *testing.T) *measured {
	t.Helper()
	core, lines := observer.New(zap.InfoLevel)
	m := &measured{ctx: log.Into(t.Context(), zap.New(core)), metrics: prometheus.NewRegistry(), lines: lines}
	var err error
	m.dataDisk, err = newDataDisk(t.TempDir(), m.metrics)
	require.NoError(t, err)
	return m
}

func (m *measured) has(free int64, err error) {
	m.free = func() (int64, error) { return free, err }
	m.look(m.ctx)
}

func TestADiskIsFullUntilThereIsRoomForMoreThanALittle(t *testing.T) {
	t.Parallel()
	m := newMeasured(t)
	require.NoError(t, m.err(), "before the first look")
	for i, c := range []struct {
		free  int64
		err   error
		full  bool
		lines int
	}{
		{free: roomy, lines: 0},
		{free: tight, lines: 0},
		{free: tight - 1, full: true, lines: 1},
		{free: 0, full: true, lines: 1},
		{free: tight, full: true, lines: 1},
		{free: roomy - 1, full: true, lines: 1},
		{err: errors.New("nobody knows"), free: roomy, full: true, lines: 1},
		{free: roomy, lines: 2},
		{err: errors.New("nobody knows"), lines: 2},
		{free: tight, lines: 2},
		{free: 1, full: true, lines: 3},
	} {
		m.has(c.free, c.err)
		require.Equal(t, c.full, m.err() != nil, "%d", i)
		require.Equal(t, c.lines, m.lines.Len(), "%d: one line when it becomes full, one when there is room", i)
		gauge := 0.0
		if c.full {
			gauge = 1
		}
		require.Equal(t, gauge, m.gauge(t), "%d", i)
	}
}

// gauge is what is on /metrics.
func (m *measured) gauge(t *testing.T) float64 {
	t.Helper()
	families, err := m.metrics.Gather()
	require.NoError(t, err)
	require.Len(t, families, 1)
	require.Equal(t, "kedge_data_disk_full", families[0].GetName())
	return families[0].GetMetric()[0].GetGauge().GetValue()
}

func TestFullDisk_refusesWritesAndNamesTheOperator(t *testing.T) {
	t.Parallel()
	m := newMeasured(t)
	_, err := m.right()
	require.NoError(t, err)
	m.has(0, nil)
	_, err = m.right()
	var told *errs.Error
	require.ErrorAs(t, err, &told)
	require.Equal(t, errs.Unavailable, told.Code)
	require.Equal(t, retryFull, told.RetryAfter)
	require.Contains(t, told.Message, "disk of the hub's data directory is full")
	require.Contains(t, told.Message, "the operator of the hub")
}

func TestFullDisk_stopsControllers(t *testing.T) {
	t.Parallel()
	m := newMeasured(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	began, ended, returned := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(returned)
		m.whileRoom(ctx, func(ctx context.Context) {
			began <- struct{}{}
			<-ctx.Done()
			ended <- struct{}{}
		})
	}()
	<-began
	m.has(roomy, nil)
	select {
	case <-ended:
		require.Fail(t, "it ended while there was room")
	default:
	}
	m.has(0, nil)
	<-ended
	m.has(0, nil)
	select {
	case <-began:
		require.Fail(t, "it began again without room")
	case <-time.After(50 * time.Millisecond):
	}
	m.has(roomy, nil)
	<-began
	stop()
	<-ended
	<-returned
	// Who has to wait for room ends, too.
	m.has(0, nil)
	m.whileRoom(ctx, func(context.Context) { require.Fail(t, "without room") })
}

func TestReadyz_aFullDiskIsADetailOnly(t *testing.T) {
	t.Parallel()
	m, h := newMeasured(t), newHealth()
	ask := func() (int, string) {
		w := httptest.NewRecorder()
		h.details(w, httptest.NewRequest(http.MethodGet, "/readyz", http.NoBody))
		return w.Code, w.Body.String()
	}
	code, body := ask()
	require.Equal(t, http.StatusServiceUnavailable, code, "nothing else is well here")
	require.NotContains(t, body, "disk", "an external kcp's is not the hub's to tell of")
	h.disk.Store(m.dataDisk)
	_, body = ask()
	require.Contains(t, body, "[+]disk ok\n")
	m.has(0, nil)
	_, body = ask()
	require.Contains(t, body, "[-]disk not ready: it is full")
	for _, c := range h.checks() {
		require.Equal(t, c.name == "disk", c.lenient, c.name)
	}
	require.Equal(t, 1, strings.Count(body, "disk"))
}

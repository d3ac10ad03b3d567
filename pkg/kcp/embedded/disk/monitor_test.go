package disk

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/log"
)

// measured is a Monitor of a disk that has as much room as the test sets.
type measured struct {
	*Monitor
	ctx     context.Context
	metrics *prometheus.Registry
	lines   *observer.ObservedLogs
}

func newMeasured(t *testing.T) *measured {
	t.Helper()
	core, lines := observer.New(zap.InfoLevel)
	m := &measured{ctx: log.Into(t.Context(), zap.New(core)), metrics: prometheus.NewRegistry(), lines: lines}
	var err error
	m.Monitor, err = NewMonitor(t.TempDir(), m.metrics)
	require.NoError(t, err)
	return m
}

func (m *measured) has(free int64, err error) {
	m.free = func() (int64, error) { return free, err }
	m.look(m.ctx)
}

func TestMonitor_isFullUntilThereIsMoreThanALittleRoom(t *testing.T) {
	t.Parallel()
	m := newMeasured(t)
	require.NoError(t, m.Err(), "before the first look")
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
		require.Equal(t, c.full, m.Err() != nil, "%d", i)
		require.Equal(t, c.lines, m.lines.Len(), "%d: one line when it becomes full, one when there is room", i)
		gauge := 0.0
		if c.full {
			gauge = 1
		}
		require.Equal(t, gauge, m.gauge(t), "%d", i)
	}
}

// gauge is the value of the metric.
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
	_, err := m.WriteRight()
	require.NoError(t, err)
	m.has(0, nil)
	_, err = m.WriteRight()
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
		m.RunWhileRoom(ctx, func(ctx context.Context) {
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
	// A run that waits for room ends with the context, too.
	m.has(0, nil)
	m.RunWhileRoom(ctx, func(context.Context) { require.Fail(t, "without room") })
}

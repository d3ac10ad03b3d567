package controller_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/log"
)

// loop is a running controller. All of it lives in a synctest bubble: time passes
// when everybody waits, and a goroutine that outlives the test fails it.
type loop struct {
	*controller.Controller
	t        *testing.T
	registry *prometheus.Registry
	logs     *observer.ObservedLogs
	ctx      context.Context
	cancel   context.CancelFunc
	done     chan struct{}
}

func newLoop(t *testing.T, options controller.Options, work controller.Func) *loop {
	t.Helper()
	l := &loop{t: t, registry: prometheus.NewRegistry()}
	metrics, err := controller.NewMetrics(l.registry)
	require.NoError(t, err)
	if options.Name == "" {
		options.Name = "test"
	}
	l.Controller = controller.New(options, metrics, work)
	core, logs := observer.New(zap.DebugLevel)
	l.logs = logs
	l.ctx = log.Into(t.Context(), zap.New(core))
	return l
}

func (l *loop) start() *loop {
	ctx, cancel := context.WithCancel(l.ctx)
	l.cancel, l.done = cancel, make(chan struct{})
	go func() {
		defer close(l.done)
		l.Run(ctx)
	}()
	synctest.Wait()
	return l
}

func (l *loop) stop() {
	l.cancel()
	<-l.done
}

// enqueue waits until all that follows at once has happened.
func (l *loop) enqueue(keys ...controller.Key) {
	for _, key := range keys {
		l.Enqueue(key)
	}
	synctest.Wait()
}

func (l *loop) metric(name string) float64 {
	families, err := l.registry.Gather()
	require.NoError(l.t, err)
	for _, family := range families {
		if family.GetName() == name {
			require.Len(l.t, family.GetMetric(), 1)
			m := family.GetMetric()[0]
			return m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	l.t.Fatalf("no metric %s", name)
	return 0
}

func (l *loop) logged(level string) int {
	return l.logs.Filter(func(e observer.LoggedEntry) bool { return e.Level.String() == level }).Len()
}

func after(d time.Duration) { <-time.After(d) }

// passes records when a key was worked on.
type passes struct {
	mu    sync.Mutex
	began time.Time
	at    []time.Duration
	keys  []controller.Key
}

func (p *passes) add(key controller.Key) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = append(p.at, time.Since(p.began))
	p.keys = append(p.keys, key)
	return len(p.at)
}

func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}

func TestLoop_failuresBackOffUntilOnePassSucceeds(t *testing.T) {
	for name, c := range map[string]struct {
		fail            func() error
		first, last     time.Duration
		errors, retries float64
		warned, stacks  int
	}{
		"an error":          {fail: func() error { return errors.New("boom") }, first: 5 * time.Millisecond, last: 30 * time.Second, errors: 16, retries: 16, warned: 16},
		"an expected error": {fail: func() error { return fmt.Errorf("x: %w", controller.ErrRetry) }, first: 5 * time.Millisecond, last: time.Second, retries: 16},
		"a panic":           {fail: func() error { panic("boom") }, first: 500 * time.Millisecond, last: 30 * time.Second, errors: 16, retries: 16, stacks: 16},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := &passes{began: time.Now()}
				l := newLoop(t, controller.Options{}, func(_ context.Context, key controller.Key) (controller.Result, error) {
					if n := p.add(key); n <= 15 || n == 17 {
						return controller.Result{}, c.fail()
					}
					return controller.Result{}, nil
				}).start()
				l.enqueue(acme)
				after(5 * time.Minute)
				require.Len(t, p.at, 16)
				require.Equal(t, c.first, p.at[1])
				for i := 1; i < 16; i++ {
					want := min(max(5*time.Millisecond<<(i-1), c.first), c.last)
					require.Equal(t, want, p.at[i]-p.at[i-1], "pass %d", i)
				}

				l.enqueue(acme)
				after(time.Minute)
				require.Len(t, p.at, 18)
				require.Equal(t, c.first, p.at[17]-p.at[16], "success made it forget")
				l.stop()

				require.InDelta(t, c.errors, l.metric("kedge_controller_errors_total"), 0)
				require.InDelta(t, c.retries, l.metric("kedge_controller_retries_total"), 0)
				require.InDelta(t, 18, l.metric("kedge_controller_reconcile_duration_seconds"), 0)
				require.Equal(t, c.warned, l.logged("warn"))
				require.Equal(t, c.stacks, l.logged("error"))
				if c.stacks > 0 {
					entry := l.logs.FilterMessage("reconcile panicked").All()[0].ContextMap()
					require.Contains(t, entry["stack"], "loop_test.go")
					require.Equal(t, "orgs", entry["cluster"])
					require.Equal(t, "acme", entry["name"])
					require.Equal(t, "test", entry["controller"])
				}
			})
		})
	}
}

func TestLoop_panicInAStepWaitsAsLong(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, p := newServer(t), &passes{began: time.Now()}
		l := newLoop(t, controller.Options{}, s.reconciler(on("A", func(context.Context, *org) (controller.Result, error) {
			if p.add(acme) == 1 {
				panic("boom")
			}
			return controller.Result{}, nil
		}))).start()
		l.enqueue(acme)
		after(time.Minute)
		l.stop()
		require.Equal(t, []time.Duration{0, 500 * time.Millisecond}, p.at)
		require.InDelta(t, 1, l.metric("kedge_controller_errors_total"), 0)
		require.Equal(t, 1, l.logged("error"))
	})
}

func TestLoop_panicOfOneKeyLeavesTheOthersAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var worked atomic.Int32
		l := newLoop(t, controller.Options{Workers: 1}, func(_ context.Context, key controller.Key) (controller.Result, error) {
			if key == acme {
				panic("boom")
			}
			worked.Add(1)
			return controller.Result{}, nil
		}).start()
		l.enqueue(acme, controller.Key{Name: "b"}, acme, controller.Key{Name: "c"})
		require.Equal(t, int32(2), worked.Load())
		l.stop()
	})
}

func TestLoop_comesBackWhenAsked(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := &passes{began: time.Now()}
		l := newLoop(t, controller.Options{}, func(_ context.Context, key controller.Key) (controller.Result, error) {
			if p.add(key) < 3 {
				return controller.Result{RequeueAfter: time.Hour}, nil
			}
			return controller.Result{}, nil
		}).start()
		l.enqueue(acme)
		after(24 * time.Hour)
		require.Equal(t, []time.Duration{0, time.Hour, 2 * time.Hour}, p.at)

		began := time.Now()
		p.at, p.began = nil, began
		l.EnqueueAfter(acme, time.Hour)
		l.EnqueueAfter(acme, time.Minute)
		l.EnqueueAfter(acme, 2*time.Hour)
		after(24 * time.Hour)
		l.stop()
		require.Equal(t, time.Minute, p.at[0], "the earliest counts")
	})
}

func TestLoop_oneKeyIsNeverWorkedOnTwiceAtOnceAndNoEventIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var busy [3]atomic.Int32
		var truth, seen [3]atomic.Int64
		key := func(i int) controller.Key { return controller.Key{Cluster: "c", Name: fmt.Sprint(i)} }
		l := newLoop(t, controller.Options{Workers: 8}, func(_ context.Context, k controller.Key) (controller.Result, error) {
			i := int(k.Name[0] - '0')
			if busy[i].Add(1) != 1 {
				t.Error("two workers on a key")
			}
			now := truth[i].Load()
			after(time.Millisecond)
			seen[i].Store(now)
			busy[i].Add(-1)
			return controller.Result{}, nil
		}).start()
		var writers sync.WaitGroup
		for w := range 6 {
			writers.Go(func() {
				for n := range 500 {
					i := (w + n) % 3
					truth[i].Add(1)
					l.Enqueue(key(i))
					after(time.Duration(w*100) * time.Microsecond)
				}
			})
		}
		writers.Wait()
		after(time.Second)
		l.stop()
		for i := range 3 {
			require.Equal(t, int64(1000), truth[i].Load())
			require.Equal(t, truth[i].Load(), seen[i].Load())
		}
	})
}

func TestLoop_sameNameInTwoClustersIsTwoKeys(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := &passes{}
		l := newLoop(t, controller.Options{Workers: 1}, func(_ context.Context, key controller.Key) (controller.Result, error) {
			p.add(key)
			return controller.Result{}, nil
		}).start()
		other := controller.Key{Cluster: "other", Name: acme.Name}
		l.enqueue(acme, other)
		l.stop()
		require.ElementsMatch(t, []controller.Key{acme, other}, p.keys)
		require.Equal(t, "orgs|acme", acme.String())
	})
}

func TestLoop_workersAreAsManyAsAskedAndDepthIsWhatWaits(t *testing.T) {
	for workers, want := range map[int]int32{0: 8, 1: 1, 3: 3} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var busy atomic.Int32
				held := make(chan struct{})
				l := newLoop(t, controller.Options{Workers: workers}, func(context.Context, controller.Key) (controller.Result, error) {
					busy.Add(1)
					<-held
					return controller.Result{}, nil
				})
				require.Zero(t, l.metric("kedge_controller_queue_depth"))
				l.start()
				for i := range 20 {
					l.Enqueue(controller.Key{Name: fmt.Sprint(i)})
				}
				synctest.Wait()
				require.Equal(t, want, busy.Load())
				require.InDelta(t, 20-want, l.metric("kedge_controller_queue_depth"), 0)
				close(held)
				synctest.Wait()
				require.Equal(t, int32(20), busy.Load())
				require.Zero(t, l.metric("kedge_controller_queue_depth"))
				l.stop()
			})
		})
	}
}

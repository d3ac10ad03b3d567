package controller_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/controller"
)

func TestLoop_resyncBringsAllBack(t *testing.T) {
	for given, every := range map[time.Duration]time.Duration{0: 10 * time.Minute, time.Hour: time.Hour} {
		t.Run(given.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				clock := clocktesting.NewFakeClock(time.Now())
				p := &passes{}
				keys := []controller.Key{acme, {Cluster: "c", Name: "b"}}
				l := newLoop(t, controller.Options{Resync: given, Clock: clock, All: func() []controller.Key { return keys }},
					func(_ context.Context, key controller.Key) (controller.Result, error) {
						p.add(key)
						return controller.Result{}, nil
					}).start()
				require.ElementsMatch(t, keys, p.keys, "it begins with all")

				p.keys = nil
				clock.Step(every - time.Second)
				synctest.Wait()
				require.Empty(t, p.keys)
				clock.Step(time.Second)
				synctest.Wait()
				require.ElementsMatch(t, keys, p.keys)

				p.keys = nil
				l.EnqueueAfter(acme, time.Minute)
				synctest.Wait()
				clock.Step(time.Minute)
				synctest.Wait()
				require.Equal(t, []controller.Key{acme}, p.keys, "delays go by the same clock")
				l.stop()
			})
		})
	}
}

func TestRun_returnsWhenTheLastPassIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := &passes{}
		ended := false
		l := newLoop(t, controller.Options{Workers: 1}, func(ctx context.Context, key controller.Key) (controller.Result, error) {
			p.add(key)
			<-ctx.Done()
			after(time.Second)
			ended = true
			return controller.Result{}, ctx.Err()
		}).start()
		l.enqueue(acme, controller.Key{Name: "b"}, controller.Key{Name: "c"})
		l.EnqueueAfter(controller.Key{Name: "later"}, time.Hour)
		l.cancel()
		synctest.Wait()
		select {
		case <-l.done:
			t.Fatal("a worker is still at it")
		default:
		}
		<-l.done
		require.True(t, ended)
		require.Equal(t, []controller.Key{acme}, p.keys, "what waits is left to the next run")
		require.Zero(t, l.metric("kedge_controller_errors_total"), "that it ends is no failure")
		require.Zero(t, l.metric("kedge_controller_retries_total"))
		require.Zero(t, l.metric("kedge_controller_queue_depth"))
		require.Zero(t, l.logged("warn"))
	})
}

func TestRun_againAsAReplicaThatLeadsAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := &passes{}
		l := newLoop(t, controller.Options{All: func() []controller.Key { return []controller.Key{acme} }},
			func(_ context.Context, key controller.Key) (controller.Result, error) {
				p.add(key)
				return controller.Result{}, nil
			})
		for i := range 3 {
			l.Enqueue(controller.Key{Name: "while it does not run"})
			l.EnqueueAfter(controller.Key{Name: "while it does not run"}, time.Minute)
			require.Len(t, p.keys, i)
			l.start()
			require.Len(t, p.keys, i+1)
			l.stop()
		}
	})
}

func TestMetrics_areThereBeforeAnythingHappensAndOncePerProcess(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	metrics, err := controller.NewMetrics(registry)
	require.NoError(t, err)
	for _, name := range []string{"a", "b"} {
		controller.New(controller.Options{Name: name}, metrics, nil)
	}
	count, err := testutil.GatherAndCount(registry, "kedge_controller_queue_depth", "kedge_controller_retries_total",
		"kedge_controller_errors_total", "kedge_controller_reconcile_duration_seconds")
	require.NoError(t, err)
	require.Equal(t, 8, count)
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)

	_, err = controller.NewMetrics(registry)
	require.ErrorContains(t, err, "register controller metrics")
}

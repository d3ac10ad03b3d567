package controller_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/test/doubles/otlptest"
)

func TestPass_hasASpanWithItsResultAndWithoutTheNameOfItsKey(t *testing.T) {
	t.Parallel()
	collector := otlptest.New(t)
	tracer := collector.Tracer(t, 1)
	metrics, err := controller.NewMetrics(prometheus.NewRegistry())
	require.NoError(t, err)
	var passes sync.WaitGroup
	keys := []string{"done", "requeued", "retried", "failed", "panic"}
	passes.Add(len(keys))
	var mu sync.Mutex
	seen := map[string]bool{}
	options := controller.Options{Name: "membership", Workers: 1}
	c := controller.New(options, metrics.Traced(tracer), func(_ context.Context, key controller.Key) (controller.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		if seen[key.Name] {
			return controller.Result{}, nil
		}
		seen[key.Name] = true
		if key.Name == "last" {
			return controller.Result{}, nil
		}
		defer passes.Done()
		switch key.Name {
		case "requeued.alice":
			return controller.Result{RequeueAfter: time.Hour}, nil
		case "retried.alice":
			return controller.Result{}, controller.ErrRetry
		case "failed.alice":
			return controller.Result{}, errors.New("alice")
		case "panic.alice":
			panic("alice")
		}
		return controller.Result{}, nil
	})
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { c.Run(ctx) })
	require.Eventually(t, func() bool {
		// Before the first run nothing is enqueued.
		for _, key := range keys {
			c.Enqueue(controller.Key{Cluster: "2vh6tnanyw60negt", Name: key + ".alice"})
		}
		mu.Lock()
		defer mu.Unlock()
		return len(seen) == len(keys)
	}, 10*time.Second, time.Millisecond)
	passes.Wait()
	// There is one worker: the last of them has ended when another pass begins.
	c.Enqueue(controller.Key{Name: "last"})
	passed := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return seen["last"]
	}
	require.Eventually(t, passed, 10*time.Second, time.Millisecond)
	stop()
	running.Wait()
	tracer.Close()

	results := map[string]int{}
	for _, s := range collector.Spans()["reconcile membership"] {
		attributes := otlptest.Attributes(s)
		results[attributes["kedge.result"]]++
		delete(attributes, "kedge.result")
		require.Subset(t, map[string]string{"kedge.controller": "membership", "kedge.cluster": "2vh6tnanyw60negt"}, attributes)
	}
	require.Positive(t, results["done"])
	require.Equal(t, 1, results["requeued"])
	require.Equal(t, 1, results["retried"])
	require.Equal(t, 2, results["failed"], "the error and the panic")
	require.NotContains(t, collector.Raw(), "alice")
}

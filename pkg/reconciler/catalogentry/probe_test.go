package catalogentry

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
)

func entryWithBackend(url string) *v1alpha1.CatalogEntry {
	e := &v1alpha1.CatalogEntry{}
	if url != "" {
		e.Spec.Backend = &v1alpha1.CatalogBackend{URL: url}
	}
	return e
}

func TestProbes_rememberTheLastResult(t *testing.T) {
	t.Parallel()
	key, held := controller.Key{Cluster: "c", Name: "e"}, entryWithBackend("https://example.com")
	problem, changes := "silent", 0
	p := &probes{
		get: func(controller.Key) (*v1alpha1.CatalogEntry, bool) { return held, held != nil },
		probe: func(_ context.Context, url string) string {
			require.Equal(t, "https://example.com", url)
			return problem
		},
		changed: func(controller.Key) { changes++ },
		known:   map[controller.Key]string{}, busy: map[string]int{},
	}
	_, ok := p.last(key)
	require.False(t, ok)
	for want, now := range []string{"silent", "silent", "", ""} {
		problem = now
		result, err := p.reconcile(t.Context(), key)
		require.NoError(t, err)
		require.GreaterOrEqual(t, result.RequeueAfter, time.Minute)
		last, ok := p.last(key)
		require.True(t, ok)
		require.Equal(t, now, last)
		require.Equal(t, 1+want/2, changes)
	}
	require.Empty(t, p.busy)

	stopped, stop := context.WithCancel(t.Context())
	stop()
	problem = "stopped"
	_, err := p.reconcile(stopped, key)
	require.ErrorIs(t, err, context.Canceled)
	last, _ := p.last(key)
	require.Empty(t, last, "a hub that stops learns nothing about a server")

	for _, gone := range []*v1alpha1.CatalogEntry{nil, entryWithBackend("")} {
		p.known[key], held = "", gone
		result, err := p.reconcile(t.Context(), key)
		require.NoError(t, err)
		require.Zero(t, result.RequeueAfter)
		_, ok = p.last(key)
		require.False(t, ok)
	}
}

// The slow servers of one Organization do not delay those of another.
func TestProbes_areFewAtOnceInOnePlace(t *testing.T) {
	t.Parallel()
	began, end := make(chan struct{}, proberWorkers), make(chan struct{})
	p := &probes{
		get: func(controller.Key) (*v1alpha1.CatalogEntry, bool) { return entryWithBackend("https://slow"), true },
		probe: func(context.Context, string) string {
			began <- struct{}{}
			<-end
			return ""
		},
		changed: func(controller.Key) {},
		known:   map[controller.Key]string{}, busy: map[string]int{},
	}
	var running sync.WaitGroup
	key := func(cluster string, i int) controller.Key {
		return controller.Key{Cluster: cluster, Name: fmt.Sprint(i)}
	}
	for i := range probesAtOnce {
		running.Go(func() { _, _ = p.reconcile(t.Context(), key("slow", i)) })
	}
	for range probesAtOnce {
		<-began
	}
	result, err := p.reconcile(t.Context(), key("slow", probesAtOnce))
	require.NoError(t, err)
	require.Equal(t, busyDelay, result.RequeueAfter, "it is tried again")
	running.Go(func() { _, _ = p.reconcile(t.Context(), key("other", 0)) })
	<-began
	close(end)
	running.Wait()
	result, err = p.reconcile(t.Context(), key("slow", probesAtOnce))
	require.NoError(t, err)
	require.GreaterOrEqual(t, result.RequeueAfter, time.Minute)
}

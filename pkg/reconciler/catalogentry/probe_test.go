package catalogentry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

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
	problem, changes := errors.New("silent"), 0
	p := &probes{
		get: func(string, string) (*v1alpha1.CatalogEntry, bool) { return held, held != nil },
		probe: func(_ context.Context, url string) error {
			require.Equal(t, "https://example.com", url)
			return problem
		},
		changed: []func(controller.Key){func(controller.Key) { changes++ }},
		clock:   clock.RealClock{}, known: map[controller.Key]string{}, places: map[string]*load{},
	}
	_, ok := p.last(key)
	require.False(t, ok)
	for want, now := range []string{unreachable, unreachable, "", ""} {
		problem = nil
		if now != "" {
			problem = fmt.Errorf("refused %d by 10.0.0.1", want)
		}
		result, err := p.reconcile(t.Context(), key)
		require.NoError(t, err)
		require.GreaterOrEqual(t, result.RequeueAfter, time.Minute)
		last, ok := p.last(key)
		require.True(t, ok)
		require.Equal(t, now, last)
		require.Equal(t, 1+want/2, changes)
	}
	require.Zero(t, p.places["c"].running)

	stopped, stop := context.WithCancel(t.Context())
	stop()
	problem = errors.New("stopped")
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

// slowProbes has servers that answer only when end is closed. began gets something for each probe
// that begins.
func slowProbes(now clock.PassiveClock) (p *probes, began chan struct{}, end chan struct{}) {
	began, end = make(chan struct{}, proberWorkers), make(chan struct{})
	return &probes{
		get: func(string, string) (*v1alpha1.CatalogEntry, bool) { return entryWithBackend("https://slow"), true },
		probe: func(context.Context, string) error {
			began <- struct{}{}
			<-end
			return nil
		},
		clock: now, known: map[controller.Key]string{}, places: map[string]*load{},
	}, began, end
}

func keyIn(place string, i int) controller.Key {
	return controller.Key{Cluster: place, Name: fmt.Sprint(i)}
}

// The slow servers of one Organization do not delay those of another.
func TestProbes_areFewAtOnceInOnePlace(t *testing.T) {
	t.Parallel()
	p, began, end := slowProbes(clock.RealClock{})
	var running sync.WaitGroup
	for i := range probesAtOnce {
		running.Go(func() { _, _ = p.reconcile(t.Context(), keyIn("slow", i)) })
	}
	for range probesAtOnce {
		<-began
	}
	result, err := p.reconcile(t.Context(), keyIn("slow", probesAtOnce))
	require.NoError(t, err)
	require.GreaterOrEqual(t, result.RequeueAfter, busyDelay, "it is tried again")
	require.LessOrEqual(t, result.RequeueAfter, 2*busyDelay)
	running.Go(func() { _, _ = p.reconcile(t.Context(), keyIn("other", 0)) })
	<-began
	close(end)
	running.Wait()
	result, err = p.reconcile(t.Context(), keyIn("slow", probesAtOnce))
	require.NoError(t, err)
	require.GreaterOrEqual(t, result.RequeueAfter, time.Minute)
}

// Many Organizations with slow servers leave half of the workers to the others, and are forgiven.
func TestProbes_ofManySlowPlacesLeaveWorkers(t *testing.T) {
	t.Parallel()
	now := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
	p, _, _ := slowProbes(now)
	var leave []func()
	enter := func(place string) bool {
		l, ok := p.enter(place)
		if ok {
			leave = append(leave, l)
		}
		return ok
	}
	passes := func(d time.Duration) {
		now.SetTime(now.Now().Add(d))
		for _, l := range leave {
			l()
		}
		leave = nil
	}
	for i := range proberWorkers {
		require.True(t, enter(fmt.Sprint("slow", i)), "nobody knows yet that it is slow")
	}
	require.True(t, enter("quick"))
	require.Zero(t, p.slow)
	passes(2 * budget)
	// The budget covers one probe that times out in each interval.
	require.True(t, enter("one"))
	passes(budget)
	passes(time.Second)
	for i := range proberWorkers {
		require.Equal(t, i < slowWorkers, enter(fmt.Sprint("slow", i)), i)
	}
	for _, place := range []string{"one", "new"} {
		require.True(t, enter(place), place)
	}
	passes(0)
	require.Zero(t, p.slow)
	require.True(t, enter("slow31"), "there is room again")
	passes(0)

	passes(2 * interval)
	require.True(t, enter("other"))
	require.Len(t, p.places, 1, "places whose time has worn off are forgotten")
}

package leader_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/leader"
)

func TestLeader_isReplacedAtOnceAfterItEnds(t *testing.T) {
	t.Parallel()
	shared := &lease{}
	for range 20 {
		a, b := start(t, shared, "a", nil, nil), start(t, shared, "b", nil, nil)
		stop := watchdog(t, a, b)
		first, second := a, b
		var ctx context.Context
		select {
		case ctx = <-a.leads:
		case ctx = <-b.leads:
			first, second = b, a
		case <-time.After(long):
			require.FailNow(t, "nobody leads")
		}
		require.NoError(t, first.Allowed())
		require.ErrorIs(t, second.Allowed(), leader.ErrNotLeading)
		require.Equal(t, 1.0, gauge(t, first.registry))
		require.Equal(t, 0.0, gauge(t, second.registry))
		first.stop()
		await(t, first.ended)
		require.Error(t, ctx.Err())
		require.ErrorIs(t, first.Allowed(), leader.ErrNotLeading)
		began := time.Now()
		next := await(t, second.leads)
		require.Less(t, time.Since(began), quick.Lease, "it did not have to wait for the lease to expire")
		second.stop()
		await(t, second.ended)
		require.Error(t, next.Err())
		stop()
	}
}

func TestLeader_countsTheRightFromTheStartOfARenewal(t *testing.T) {
	t.Parallel()
	clk := clocktesting.NewFakeClock(time.Now())
	began := clk.Now()
	shared := &lease{}
	slow := make(chan struct{})
	r := &lock{lease: shared, id: "a"}
	r.faulty(func(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
		if shared.holder() != "" {
			// Nothing is renewed any more.
			<-ctx.Done()
			return ctx.Err()
		}
		select {
		case <-slow:
		default:
			if record.RenewTime.IsZero() {
				return nil // the read before
			}
			close(slow)
			clk.Step(quick.Renew - time.Millisecond)
		}
		return nil
	})
	l, err := leader.New(leader.Config{Lock: r, Metrics: prometheus.NewRegistry(), Timing: quick, Clock: clk})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	leads, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		l.Run(ctx, func(ctx context.Context) { leads <- struct{}{}; <-ctx.Done() })
	}()
	await(t, leads)
	until, err := l.Until()
	require.NoError(t, err)
	require.Equal(t, began.Add(quick.Renew), until)
	clk.Step(time.Millisecond)
	require.ErrorIs(t, l.Allowed(), leader.ErrNotLeading)
	stop()
	await(t, ended)
}

// A process that was stopped and goes on has a clock that has jumped, and neither
// timers nor goroutines that have run yet.
func TestLeader_mayNotWriteAfterAPause(t *testing.T) {
	t.Parallel()
	clk := clocktesting.NewFakeClock(time.Now())
	r := start(t, &lease{}, "a", clk, nil)
	ctx := await(t, r.leads)
	require.NoError(t, r.Allowed())
	// Renewals go on, so only what began before the pause may not count after it.
	r.lock.faulty(func(context.Context, resourcelock.LeaderElectionRecord) error { return errors.New("kcp is gone") })
	clk.Step(time.Minute)
	require.ErrorIs(t, r.Allowed(), leader.ErrNotLeading)
	require.Equal(t, 0.0, gauge(t, r.registry))
	await(t, ctx.Done())
	r.lock.faulty(nil)
	again := stepUntil(t, clk, r.leads)
	require.NoError(t, again.Err())
	require.NoError(t, r.Allowed())
}

func TestLeader_beginsANewTermAfterAPause(t *testing.T) {
	t.Parallel()
	clk := clocktesting.NewFakeClock(time.Now())
	armed := make(chan struct{}, 64)
	r := start(t, &lease{}, "a", numb{clk, armed}, nil)
	ctx := await(t, r.leads)
	await(t, armed)
	clk.Step(time.Minute)
	await(t, ctx.Done())
	again := stepUntil(t, clk, r.leads)
	require.NoError(t, again.Err())
}

func TestLeader_doesNotReleaseTheSuccessorsLease(t *testing.T) {
	t.Parallel()
	clk := clocktesting.NewFakeClock(time.Now())
	shared := &lease{}
	r := start(t, shared, "a", clk, nil)
	ctx := await(t, r.leads)
	r.lock.faulty(func(_ context.Context, record resourcelock.LeaderElectionRecord) error {
		if !record.RenewTime.IsZero() && record.HolderIdentity != "" {
			return errors.New("renewals do not get through")
		}
		return nil
	})
	shared.hold("successor")
	clk.Step(time.Minute)
	await(t, ctx.Done())
	r.stop()
	await(t, r.ended)
	require.Equal(t, "successor", shared.holder())
}

func TestLeader_endsTheTermWhenTheLeaseIsTaken(t *testing.T) {
	t.Parallel()
	// Time alone would leave it the right for longer than the test waits.
	shared := &lease{}
	r := startWith(t, shared, "a", leader.Config{Timing: leader.Timing{Lease: 4 * long, Renew: 2 * long, Retry: quick.Retry}}, nil)
	ctx := await(t, r.leads)
	require.NoError(t, r.Allowed())
	shared.hold("somebody")
	await(t, ctx.Done())
	require.ErrorIs(t, r.Allowed(), leader.ErrNotLeading)
	require.Equal(t, "somebody", shared.holder())
}

func TestLeader_isFencedBeforeAnotherLeads(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(context.Context, resourcelock.LeaderElectionRecord) error{
		"kcp refuses":         func(context.Context, resourcelock.LeaderElectionRecord) error { return errors.New("no") },
		"kcp does not answer": func(ctx context.Context, _ resourcelock.LeaderElectionRecord) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shared := &lease{}
			a := start(t, shared, "a", nil, nil)
			ctx := await(t, a.leads)
			b := start(t, shared, "b", nil, nil)
			defer watchdog(t, a, b)()
			a.lock.faulty(fault)
			await(t, ctx.Done())
			require.ErrorIs(t, a.Allowed(), leader.ErrNotLeading)
			next := await(t, b.leads)
			a.lock.faulty(nil)
			// It waits its turn again.
			b.stop()
			await(t, b.ended)
			require.Error(t, next.Err())
			await(t, a.leads)
		})
	}
}

// A kcp that takes its time, a third of the right to write and more, is not lost.
func TestLeader_staysWithASlowKCP(t *testing.T) {
	t.Parallel()
	timing := leader.Timing{Lease: 9 * time.Second, Renew: 7 * time.Second, Retry: 30 * time.Millisecond}
	r := startWith(t, &lease{}, "a", leader.Config{Timing: timing}, nil)
	ctx := await(t, r.leads)
	slow := make(chan struct{}, 64)
	r.lock.faulty(func(ctx context.Context, _ resourcelock.LeaderElectionRecord) error {
		select {
		case <-time.After(timing.Renew * 7 / 20):
			slow <- struct{}{}
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	// The third ends when the right to write that it began with is over.
	for range 3 {
		await(t, slow)
		require.NoError(t, r.Allowed())
	}
	require.NoError(t, ctx.Err())
	r.lock.faulty(nil)
}

func TestLeader_survivesAHungRenewal(t *testing.T) {
	t.Parallel()
	r := start(t, &lease{}, "a", nil, nil)
	ctx := await(t, r.leads)
	hung := make(chan struct{})
	r.lock.faulty(func(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
		if !record.RenewTime.IsZero() {
			r.lock.faulty(nil)
			<-ctx.Done()
			close(hung)
		}
		return ctx.Err()
	})
	await(t, hung)
	before, err := r.Until()
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		until, err := r.Until()
		return err == nil && until.After(before)
	}, long, time.Millisecond)
	require.NoError(t, ctx.Err())
}

func TestLeader_holdsTheLeaseUntilWritesEnd(t *testing.T) {
	t.Parallel()
	shared := &lease{}
	asked, finish := make(chan struct{}), make(chan struct{})
	a := start(t, shared, "a", nil, func(ctx context.Context) {
		<-ctx.Done()
		close(asked)
		<-finish
	})
	await(t, a.leads)
	b := start(t, shared, "b", nil, nil)
	defer watchdog(t, a, b)()
	a.stop()
	await(t, asked)
	select {
	case <-b.leads:
		require.FailNow(t, "the other leads while the first still works")
	case <-time.After(quick.Lease * 3 / 2):
	}
	require.NoError(t, a.Allowed(), "what it still works on may be written")
	close(finish)
	await(t, a.ended)
	await(t, b.leads)
}

func TestLeader_doesNotReleaseALostLeaseDuringWrites(t *testing.T) {
	t.Parallel()
	shared := &lease{}
	finish := make(chan struct{})
	a := start(t, shared, "a", nil, func(ctx context.Context) {
		<-ctx.Done()
		<-finish
	})
	ctx := await(t, a.leads)
	a.lock.faulty(func(_ context.Context, record resourcelock.LeaderElectionRecord) error {
		if !record.RenewTime.IsZero() && record.HolderIdentity != "" {
			return errors.New("renewals do not get through")
		}
		return nil
	})
	await(t, ctx.Done())
	require.Never(t, func() bool { return shared.holder() != "a" }, quick.Renew/2, time.Millisecond)
	close(finish)
	a.lock.faulty(nil)
	a.stop()
	await(t, a.ended)
	require.Empty(t, shared.holder())
}

func TestLeader_holdsNothingWhenItEndsWaiting(t *testing.T) {
	t.Parallel()
	shared := &lease{}
	a := start(t, shared, "a", nil, nil)
	await(t, a.leads)
	b := start(t, shared, "b", nil, nil)
	b.stop()
	await(t, b.ended)
	require.Empty(t, b.leads)
	require.Equal(t, "a", shared.holder())
	a.stop()
	await(t, a.ended)
	require.Empty(t, shared.holder())
}

func TestAlone_leadsWithoutWaiting(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	l, err := leader.Alone(registry)
	require.NoError(t, err)
	until, err := l.Until()
	require.NoError(t, err)
	require.Zero(t, until)
	require.Equal(t, 1.0, gauge(t, registry))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	led := false
	l.Run(ctx, func(got context.Context) { led = got == ctx })
	require.True(t, led)
}

func TestNew_refusesTimingsThatDoNotFence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		timing leader.Timing
		want   string
	}{
		"the default":                         {leader.DefaultTiming(), ""},
		"none, which is the default":          {leader.Timing{}, ""},
		"a lease that others read as shorter": {leader.Timing{Lease: 2500 * time.Millisecond, Renew: time.Second, Retry: time.Millisecond}, "whole seconds"},
		"a right as long as the lease":        {leader.Timing{Lease: 3 * time.Second, Renew: 3 * time.Second, Retry: time.Second}, "more than a second less"},
		"renewals too rare":                   {leader.Timing{Lease: 3 * time.Second, Renew: time.Second, Retry: time.Second}, "retryPeriod"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := leader.New(leader.Config{Lock: &lock{lease: &lease{}, id: "a"}, Metrics: prometheus.NewRegistry(), Timing: c.timing})
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

// stepUntil lets a little time go by, over and over, until something comes.
func stepUntil[T any](t *testing.T, clk *clocktesting.FakeClock, c <-chan T) T {
	t.Helper()
	deadline, tick := time.After(long), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case v := <-c:
			return v
		case <-deadline:
			require.FailNow(t, "nothing came")
		case <-tick.C:
			clk.Step(quick.Retry)
		}
	}
}

func TestRunAll_runsUntilAllHaveReturned(t *testing.T) {
	t.Parallel()
	l, err := leader.Alone(prometheus.NewRegistry())
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	began, returned := make(chan struct{}), make(chan struct{})
	run := func(ctx context.Context) {
		began <- struct{}{}
		<-ctx.Done()
		returned <- struct{}{}
	}
	ended := make(chan struct{})
	go func() { defer close(ended); l.RunAll(ctx, run, run) }()
	await(t, began)
	await(t, began)
	stop()
	await(t, returned)
	select {
	case <-ended:
		require.Fail(t, "RunAll returned before its second func")
	default:
	}
	await(t, returned)
	await(t, ended)
}

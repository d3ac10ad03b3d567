package leader_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/leader"
)

// machine is a clock whose wall clock jumps, as it does when somebody sets it, or
// when a machine goes on whose monotonic clock stood still.
type machine struct {
	*clocktesting.FakeClock
	ahead atomic.Int64
}

func newMachine() *machine { return &machine{FakeClock: clocktesting.NewFakeClock(time.Now())} }

func (m *machine) Now() time.Time { return m.FakeClock.Now().Add(time.Duration(m.ahead.Load())) }

func (m *machine) jump(by time.Duration) { m.ahead.Add(int64(by)) }

func cutOff(context.Context, resourcelock.LeaderElectionRecord) error {
	return errors.New("nothing gets through")
}

func TestLeader_mayNotWriteAfterASuspension(t *testing.T) {
	t.Parallel()
	suspended := func(t *testing.T) (*replica, context.Context) {
		t.Helper()
		clk := newMachine()
		r := start(t, &lease{}, "a", clk, nil)
		ctx := await(t, r.leads)
		require.NoError(t, r.Allowed())
		r.lock.faulty(cutOff)
		clk.jump(time.Minute)
		require.ErrorIs(t, r.Allowed(), leader.ErrNotLeading)
		require.Equal(t, 0.0, gauge(t, r.registry))
		return r, ctx
	}
	t.Run("somebody else leads by now", func(t *testing.T) {
		t.Parallel()
		r, ctx := suspended(t)
		r.lock.lease.hold("successor")
		r.lock.faulty(nil)
		await(t, ctx.Done())
		require.ErrorIs(t, r.Allowed(), leader.ErrNotLeading)
		require.Equal(t, "successor", r.lock.lease.holder())
	})
	t.Run("nobody else has led", func(t *testing.T) {
		t.Parallel()
		r, ctx := suspended(t)
		r.lock.faulty(nil)
		leadsOn(ctx, t, r)
	})
}

// leadsOn waits until a replica may write again, in the same term.
func leadsOn(term context.Context, t *testing.T, r *replica) {
	t.Helper()
	require.Eventually(t, func() bool { return r.Allowed() == nil }, long, time.Millisecond)
	require.NoError(t, term.Err())
	require.Empty(t, r.leads)
}

func TestLeader_keepsTheTermWhenTheWallClockIsSet(t *testing.T) {
	t.Parallel()
	clk := newMachine()
	r := start(t, &lease{}, "a", clk, nil)
	ctx := await(t, r.leads)
	for _, by := range []time.Duration{time.Minute, -2 * time.Hour, 10 * time.Second, time.Hour, time.Hour, time.Hour} {
		clk.jump(by)
		leadsOn(ctx, t, r)
		before, err := r.Until()
		require.NoError(t, err)
		// A timer that was armed before the jump comes to its end.
		clk.Step(quick.Renew / 2)
		require.Eventually(t, func() bool {
			until, err := r.Until()
			return err == nil && until.After(before)
		}, long, time.Millisecond)
		leadsOn(ctx, t, r)
	}
}

func TestLeader_gainsNothingFromAWallClockSetBack(t *testing.T) {
	t.Parallel()
	clk := newMachine()
	r := start(t, &lease{}, "a", clk, nil)
	ctx := await(t, r.leads)
	r.lock.faulty(cutOff)
	clk.jump(-time.Hour)
	require.NoError(t, r.Allowed())
	clk.Step(quick.Renew)
	require.ErrorIs(t, r.Allowed(), leader.ErrNotLeading)
	await(t, ctx.Done())
}

func TestLeader_endsTheTermWhenTheLeaseIsDeleted(t *testing.T) {
	t.Parallel()
	r := start(t, &lease{}, "a", nil, nil)
	ctx := await(t, r.leads)
	r.lock.lease.remove()
	await(t, ctx.Done())
	require.NoError(t, await(t, r.leads).Err(), "it leads anew")
}

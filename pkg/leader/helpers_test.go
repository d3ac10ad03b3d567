package leader_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/leader"
)

// quick leaves a machine that is busy the time for what is to succeed, and has the tests
// wait no longer than that for what is to fail.
var quick = leader.Timing{Lease: 6 * time.Second, Renew: 4 * time.Second, Retry: 30 * time.Millisecond}

const long = 30 * time.Second

// lease is a Lease that replicas share, with a compare-and-swap as kcp's.
type lease struct {
	mu      sync.Mutex
	version int
	record  *resourcelock.LeaderElectionRecord
}

func (l *lease) holder() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.record == nil {
		return ""
	}
	return l.record.HolderIdentity
}

// hold makes somebody the holder who is not among the replicas of the test.
func (l *lease) hold(who string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version++
	l.record = &resourcelock.LeaderElectionRecord{HolderIdentity: who, LeaseDurationSeconds: 60}
}

// remove takes the lease away altogether.
func (l *lease) remove() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version++
	l.record = nil
}

// lock is one replica's way to the lease. before is called with every write, and
// its error is the write's.
type lock struct {
	lease  *lease
	id     string
	mu     sync.Mutex
	seen   int
	before func(ctx context.Context, record resourcelock.LeaderElectionRecord) error
}

func (l *lock) faulty(before func(context.Context, resourcelock.LeaderElectionRecord) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before = before
}

func (l *lock) fault(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	before := l.before
	l.mu.Unlock()
	if before == nil {
		return ctx.Err()
	}
	return before(ctx, record)
}

var resource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := l.fault(ctx, resourcelock.LeaderElectionRecord{HolderIdentity: l.id}); err != nil {
		return nil, nil, err
	}
	l.lease.mu.Lock()
	defer l.lease.mu.Unlock()
	if l.lease.record == nil {
		return nil, nil, apierrors.NewNotFound(resource, "kedge-hub")
	}
	l.seen = l.lease.version
	record := *l.lease.record
	raw, err := json.Marshal(record)
	return &record, raw, err
}

func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, true)
}

func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, false)
}

func (l *lock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, create bool) error {
	if err := l.fault(ctx, record); err != nil {
		return err
	}
	l.lease.mu.Lock()
	defer l.lease.mu.Unlock()
	if create != (l.lease.record == nil) || !create && l.seen != l.lease.version {
		return apierrors.NewConflict(resource, "kedge-hub", errors.New("somebody was faster"))
	}
	l.lease.version++
	l.lease.record, l.seen = &record, l.lease.version
	return nil
}

func (l *lock) RecordEvent(string) {}
func (l *lock) Identity() string   { return l.id }
func (l *lock) Describe() string   { return "lease" }

// replica is a leader that runs.
type replica struct {
	*leader.Leader
	lock     *lock
	registry *prometheus.Registry
	stop     context.CancelFunc
	ended    chan struct{}
	// leads gets the context of every time that it leads.
	leads chan context.Context
}

// start runs a replica. lead is called while it leads and may be nil.
func start(t *testing.T, shared *lease, id string, clk clock.Clock, lead func(context.Context)) *replica {
	t.Helper()
	return startWith(t, shared, id, leader.Config{Clock: clk, Timing: quick}, lead)
}

func startWith(t *testing.T, shared *lease, id string, config leader.Config, lead func(context.Context)) *replica {
	t.Helper()
	r := &replica{
		lock: &lock{lease: shared, id: id}, registry: prometheus.NewRegistry(),
		ended: make(chan struct{}), leads: make(chan context.Context, 64),
	}
	var err error
	config.Lock, config.Metrics = r.lock, r.registry
	r.Leader, err = leader.New(config)
	require.NoError(t, err)
	require.ErrorIs(t, r.Allowed(), leader.ErrNotLeading, "nobody leads before Run")
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() {
		defer close(r.ended)
		r.Run(ctx, func(ctx context.Context) {
			r.leads <- ctx
			if lead != nil {
				lead(ctx)
			}
			<-ctx.Done()
		})
	}()
	t.Cleanup(func() { stop(); await(t, r.ended) })
	return r
}

// numb is a clock whose timers never fire. It tells when there is one.
type numb struct {
	*clocktesting.FakeClock
	armed chan struct{}
}

func (n numb) NewTimer(time.Duration) clock.Timer {
	n.armed <- struct{}{}
	return clocktesting.NewFakeClock(time.Time{}).NewTimer(time.Hour)
}

// await waits for what a channel gives, or for its end.
func await[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(long):
		require.FailNow(t, "nothing came")
		panic("unreachable")
	}
}

// gauge is the value of kedge_leader.
func gauge(t *testing.T, r *prometheus.Registry) float64 {
	t.Helper()
	families, err := r.Gather()
	require.NoError(t, err)
	require.Len(t, families, 1)
	require.Equal(t, "kedge_leader", families[0].GetName())
	return families[0].GetMetric()[0].GetGauge().GetValue()
}

// watchdog looks, in a tight loop until the function that it returns is called,
// whether two replicas may write at the same time, which fails the test.
func watchdog(t *testing.T, replicas ...*replica) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stopped, both := make(chan struct{}), false
	go func() {
		defer close(stopped)
		// It lets the replicas run between two looks where they have only one processor.
		for ; ctx.Err() == nil && !both; runtime.Gosched() {
			var first *replica
			for _, r := range replicas {
				switch {
				case r.Allowed() != nil:
				case first == nil:
					first = r
				default:
					// Between the two questions the right may have passed on rightfully, but
					// not back.
					both = both || first.Allowed() == nil
				}
			}
		}
	}()
	return func() {
		cancel()
		<-stopped
		require.False(t, both, "two replicas may write at once")
	}
}

package leader

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/log"
)

// ErrNotLeading means that this replica may not write at present.
var ErrNotLeading = errors.New("this replica does not lead")

// Timing determines how fast a leader is replaced. Candidates check the Lease at intervals of
// at most 2.2 times Retry. A killed leader is replaced after at most Lease and two such
// intervals, one that releases the Lease after one interval.
type Timing struct {
	// Lease is the time after the last observed renewal during which other replicas do not
	// take the Lease. It is in whole seconds.
	Lease time.Duration
	// Renew is the duration of the right to write after the start of a renewal. It is
	// shorter than Lease by more than a second, because others see only the first of two
	// renewals in one second. The rest is for requests in flight when the right ends.
	Renew time.Duration
	// Retry is the interval of renewals, and the minimum interval at which candidates check
	// the Lease.
	Retry time.Duration
}

// DefaultTiming replaces a killed leader within 12.1 s, and one that released the Lease within
// 1.6 s.
func DefaultTiming() Timing {
	return Timing{Lease: 9 * time.Second, Renew: 6 * time.Second, Retry: 700 * time.Millisecond}
}

// Config configures an election.
type Config struct {
	// Lock is the lock of the election, as returned by NewLease.
	Lock resourcelock.Interface
	// Metrics gets kedge_leader, 1 while this replica may write.
	Metrics prometheus.Registerer
	// Timing must be equal on all replicas. The zero value is DefaultTiming.
	Timing Timing
	// Clock measures the right to write; nil is the real clock. Now is the wall clock, Since
	// the monotonic one.
	Clock clock.Clock
}

// Leader is a replica that is the leader or a candidate.
type Leader struct {
	lock   resourcelock.Interface
	timing Timing
	clock  clock.Clock
	began  time.Time

	mu sync.Mutex
	// until is the end of the right to write, or zero if there is none.
	until moment
}

// moment is a time by both clocks of the machine. The monotonic clock can stand still while the
// machine is suspended; the wall clock can be set.
type moment struct{ monotonic, wall time.Time }

func (m moment) add(d time.Duration) moment { return moment{m.monotonic.Add(d), m.wall.Add(d)} }

func (l *Leader) now() moment {
	return moment{monotonic: l.began.Add(l.clock.Since(l.began)), wall: l.clock.Now().Round(0)}
}

// New returns a replica that is the leader while it holds the lock.
func New(c Config) (*Leader, error) {
	l := &Leader{lock: c.Lock, timing: c.Timing, clock: c.Clock}
	if l.timing == (Timing{}) {
		l.timing = DefaultTiming()
	}
	if l.clock == nil {
		l.clock = clock.RealClock{}
	}
	l.began = l.clock.Now()
	if l.timing.Lease%time.Second != 0 {
		return nil, fmt.Errorf("elect a leader: a lease of %s is not whole seconds", l.timing.Lease)
	}
	if l.timing.Renew+time.Second >= l.timing.Lease {
		return nil, fmt.Errorf("elect a leader: a right to write of %s is not more than a second less than a lease of %s", l.timing.Renew, l.timing.Lease)
	}
	if _, err := l.elector(&term{leader: l}, func(context.Context) {}); err != nil {
		return nil, fmt.Errorf("elect a leader: %w", err)
	}
	return l, l.register(c.Metrics)
}

// Alone returns a replica that is always the leader, for a hub with an embedded kcp.
func Alone(metrics prometheus.Registerer) (*Leader, error) {
	l := &Leader{}
	return l, l.register(metrics)
}

func (l *Leader) register(metrics prometheus.Registerer) error {
	gauge := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kedge_leader",
		Help: "1 while this replica is the leader and its controllers may write, else 0.",
	}, func() float64 {
		if l.Allowed() != nil {
			return 0
		}
		return 1
	})
	if err := metrics.Register(gauge); err != nil {
		return fmt.Errorf("register leader metrics: %w", err)
	}
	return nil
}

// Allowed returns nil only while this replica may write.
func (l *Leader) Allowed() error {
	_, err := l.Until()
	return err
}

// Until returns the end of the right to write by the monotonic clock, without further renewals.
// The zero time means that it does not end. The error is ErrNotLeading if the right has ended by
// either clock.
func (l *Leader) Until() (time.Time, error) {
	if l.lock == nil {
		return time.Time{}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.now(); !now.monotonic.Before(l.until.monotonic) || !now.wall.Before(l.until.wall) {
		return time.Time{}, ErrNotLeading
	}
	return l.until.monotonic, nil
}

// Run calls lead each time this replica becomes the leader, with a context that ends when it is
// no longer the leader or when ctx ends. Run returns after ctx has ended and lead has returned.
// The Lease is released then, so that another replica can take it at once.
func (l *Leader) Run(ctx context.Context, lead func(ctx context.Context)) {
	if l.lock == nil {
		lead(ctx)
		return
	}
	for ctx.Err() == nil {
		l.term(ctx, lead)
		// A replica that lost the Lease gives others the chance to take it first.
		select {
		case <-ctx.Done():
		case <-l.clock.After(l.timing.Retry):
		}
	}
}

// RunAll calls all of runs concurrently each time this replica becomes the leader, as Run does.
func (l *Leader) RunAll(ctx context.Context, runs ...func(ctx context.Context)) {
	l.Run(ctx, func(ctx context.Context) {
		var running sync.WaitGroup
		for _, run := range runs {
			running.Go(func() { run(ctx) })
		}
		running.Wait()
	})
}

// term waits until this replica is the leader and returns when it is not any longer.
func (l *Leader) term(ctx context.Context, lead func(context.Context)) {
	leading, stopLeading := context.WithCancel(ctx)
	// The Lease is renewed until lead has returned.
	electing, stopElecting := context.WithCancel(context.WithoutCancel(ctx))
	t := &term{leader: l, led: make(chan struct{}), stop: func() { stopLeading(); stopElecting() }}
	defer context.AfterFunc(ctx, t.withdraw)()
	elector, err := l.elector(t, func(context.Context) {
		defer close(t.led)
		defer t.end()
		if !t.begun() {
			return
		}
		t.running.Go(func() { t.expire(electing) })
		log.From(ctx).Info("this replica leads", zap.String("identity", l.lock.Identity()))
		lead(leading)
		log.From(ctx).Info("this replica leads no longer", zap.String("identity", l.lock.Identity()))
	})
	// New has validated the configuration.
	utilruntime.Must(err)
	elector.Run(electing)
	t.end()
	t.wait()
}

func (l *Leader) elector(t *term, started func(context.Context)) (*leaderelection.LeaderElector, error) {
	return leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          &timedLock{Interface: l.lock, term: t, timeout: l.timing.Renew / 2},
		LeaseDuration: l.timing.Lease,
		RenewDeadline: l.timing.Renew,
		RetryPeriod:   l.timing.Retry,
		// The lock releases the Lease only after lead has returned.
		ReleaseOnCancel: true,
		Callbacks:       leaderelection.LeaderCallbacks{OnStartedLeading: started, OnStoppedLeading: func() {}},
	})
}

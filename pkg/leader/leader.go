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

// ErrNotLeading says that this replica may not write, now.
var ErrNotLeading = errors.New("this replica does not lead")

// Timing says how fast a lost leader is replaced. A replica that is killed is
// followed by another after at most Lease and twice the longest pause between two
// looks of that one, which is 2.2 times Retry; one that ends well, after one such
// pause.
type Timing struct {
	// Lease is how long others leave a leader alone after its last renewal that they
	// saw; whole seconds.
	Lease time.Duration
	// Renew is how long the right to write lasts after the begin of a renewal. It is
	// less than Lease by more than a second, because of two renewals in one second
	// others see only the first; the rest is for requests that are on their way when
	// the right ends.
	Renew time.Duration
	// Retry is the time between two renewals, and the shortest between two looks of
	// those who wait.
	Retry time.Duration
}

// DefaultTiming replaces a leader that was killed within 12.1 s and one that ended
// within 1.6 s.
func DefaultTiming() Timing {
	return Timing{Lease: 9 * time.Second, Renew: 6 * time.Second, Retry: 700 * time.Millisecond}
}

// Config is what an election needs.
type Config struct {
	// Lock is what replicas contend for, as NewLease makes it.
	Lock resourcelock.Interface
	// Metrics gets kedge_leader, 1 while this replica may write.
	Metrics prometheus.Registerer
	// Timing must be the same for all replicas; the zero value is DefaultTiming.
	Timing Timing
	// Clock is the time that the right to write goes by; nil is the real one. Now is
	// the wall clock, which may be set, and Since the monotonic one.
	Clock clock.Clock
}

// Leader is a replica that leads, or waits for it.
type Leader struct {
	lock   resourcelock.Interface
	timing Timing
	clock  clock.Clock
	began  time.Time

	mu sync.Mutex
	// until is when the right to write ends; zero where there is none.
	until moment
}

// moment is a time by both of a machine's clocks. The monotonic one, which nobody
// sets, may stand still while the machine is suspended; the wall clock goes on.
type moment struct{ monotonic, wall time.Time }

func (m moment) add(d time.Duration) moment { return moment{m.monotonic.Add(d), m.wall.Add(d)} }

func (l *Leader) now() moment {
	return moment{monotonic: l.began.Add(l.clock.Since(l.began)), wall: l.clock.Now().Round(0)}
}

// New returns a replica that leads while it holds the lock.
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

// Alone returns a replica that always leads, for a hub that has its kcp to itself.
// It holds nothing and waits for nothing.
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

// Allowed is nil only while this replica may write.
func (l *Leader) Allowed() error {
	_, err := l.Until()
	return err
}

// Until returns until when, by the monotonic clock, this replica may write even if
// it renews nothing any more, and an ErrNotLeading where it may not, by that clock
// or the wall clock. The zero time is no end.
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

// Run calls lead whenever this replica has come to lead, with a context that ends
// when it does not any more, or when ctx does. It returns when ctx has ended and
// lead has returned; the lease is free by then, for another to take at once.
func (l *Leader) Run(ctx context.Context, lead func(ctx context.Context)) {
	if l.lock == nil {
		lead(ctx)
		return
	}
	for ctx.Err() == nil {
		l.term(ctx, lead)
		// Whoever has just lost it lets others go first.
		select {
		case <-ctx.Done():
		case <-l.clock.After(l.timing.Retry):
		}
	}
}

// term waits until this replica leads, and returns when it does not any more.
func (l *Leader) term(ctx context.Context, lead func(context.Context)) {
	leading, stopLeading := context.WithCancel(ctx)
	// The lease is renewed until lead has come to its end.
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
	// New has seen that the configuration makes one.
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
		// The lock gives the lease back only when lead has returned.
		ReleaseOnCancel: true,
		Callbacks:       leaderelection.LeaderCallbacks{OnStartedLeading: started, OnStoppedLeading: func() {}},
	})
}

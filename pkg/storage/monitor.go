package storage

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/log"
)

// Write is what a write does to the store.
type Write int

// The kinds of writes, from the one that is carried out longest.
const (
	// Ending takes rights or space away.
	Ending Write = iota
	// Change changes what exists at the same size.
	Change
	// Growth makes new objects or larger ones.
	Growth
)

func (w Write) String() string { return [...]string{"ending", "change", "growth"}[w] }

// Level is what is written.
type Level int

// The levels.
const (
	// Open means that everything is written.
	Open Level = iota
	// NoGrowth means that everything but Growth is written.
	NoGrowth
	// EndingsOnly means that only Endings are written.
	EndingsOnly
	// Closed means that nothing is written.
	Closed
)

const (
	// EtcdStore is the name of the database of the embedded etcd, as a store that is measured.
	EtcdStore = "etcd"
	// DiskStore is the name of the disk with the data of the embedded kcp.
	DiskStore = "disk"

	// measureDisk is the interval at which the disk is measured.
	measureDisk = time.Second
	// retryClosed is the Retry-After while nothing is written.
	retryClosed = 10 * time.Second
	// countedDisk is the part of a large disk that counts.
	countedDisk = 10 << 30
	// tight is the free space below which a disk without reserve is closed.
	tight = 64 << 20
	// slack is how far a store must be below a floor to leave it, as a share.
	slack = 0.02
)

// floor is the share of a store from which on a Level holds.
func floor(l Level) float64 {
	if l == NoGrowth {
		return 0.80
	}
	return 0.95
}

// Usage is how full a store is.
type Usage struct {
	// Used and Limit are bytes. A Limit of zero means that the store was not measured.
	Used, Limit int64
	// Refuses means that the store itself refuses what is larger than nothing, as etcd does after
	// its alarm NOSPACE.
	Refuses bool
	// Spent means that a write may end the process.
	Spent bool
}

func (u Usage) share() float64 {
	if u.Limit <= 0 {
		return 0
	}
	return float64(u.Used) / float64(u.Limit)
}

// Near reports whether a store is so full that growth, once it is refused, stays refused.
func (u Usage) Near() bool { return u.level(NoGrowth) > Open }

// level returns the level of a store that had the level was.
func (u Usage) level(was Level) Level {
	if u.Spent {
		return Closed
	}
	for _, l := range []Level{EndingsOnly, NoGrowth} {
		from := floor(l)
		if was >= l {
			from -= slack
		}
		if u.share() >= from || l == EndingsOnly && u.Refuses {
			return l
		}
	}
	return Open
}

// state is what the Monitor knows of all stores.
type state struct {
	usage  map[string]Usage
	levels map[string]Level
	// level is the highest level, and store the one that has it.
	level Level
	store string
	// over is closed when the level changes.
	over chan struct{}
}

// Monitor knows how full the stores are. Until something is measured, everything is written.
type Monitor struct {
	mu sync.Mutex
	// now is replaced under mu and never changed.
	now     atomic.Pointer[state]
	refused *prometheus.CounterVec
	// reserved is true while etcd has disk space that is allocated ahead.
	reserved atomic.Bool
}

// NewMonitor returns a Monitor. It registers kedge_storage_*.
func NewMonitor(metrics prometheus.Registerer) (*Monitor, error) {
	m := &Monitor{refused: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kedge_storage_refused_total",
		Help: "Writes refused because the store of the embedded kcp is full, by what they are: growth, change or ending.",
	}, []string{"write"})}
	m.now.Store(&state{over: make(chan struct{})})
	for _, w := range []Write{Ending, Change, Growth} {
		m.refused.WithLabelValues(w.String())
	}
	if err := metrics.Register(m.refused); err != nil {
		return nil, fmt.Errorf("register the metrics of the store: %w", err)
	}
	return m, metrics.Register(&collector{m})
}

// Measured takes a new measurement of a store.
func (m *Monitor) Measured(ctx context.Context, store string, u Usage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.now.Load()
	next := &state{usage: map[string]Usage{}, levels: map[string]Level{}, over: was.over}
	for name, usage := range was.usage {
		next.usage[name], next.levels[name] = usage, was.levels[name]
	}
	next.usage[store], next.levels[store] = u, u.level(was.levels[store])
	for _, name := range []string{DiskStore, EtcdStore} {
		if l := next.levels[name]; l > next.level {
			next.level, next.store = l, name
		}
	}
	if next.levels[store] != was.levels[store] {
		report(ctx, store, u, was.levels[store], next.levels[store])
	}
	if next.level == was.level {
		m.now.Store(next)
		return
	}
	next.over = make(chan struct{})
	m.now.Store(next)
	close(was.over)
}

// report logs that a store has another level.
func report(ctx context.Context, store string, u Usage, was, is Level) {
	logger := log.From(ctx).With(zap.String("store", store), zap.Int64("usedBytes", u.Used), zap.Int64("limitBytes", u.Limit))
	switch {
	case is < was:
		logger.Info("the store has room again: "+written(is), zap.String("was", written(was)))
	case is == Closed:
		logger.Error("the store is full, and so is its reserve: " + written(is))
	default:
		logger.Error("the store is nearly full: " + written(is))
	}
}

// written says what is written on a level.
func written(l Level) string {
	switch l {
	case NoGrowth:
		return "nothing new or larger is written"
	case EndingsOnly:
		return "only what takes rights or space away is written"
	case Closed:
		return "nothing is written"
	}
	return "everything is written"
}

// Reserved says whether etcd has disk space that is allocated ahead. Without it a disk without free
// space is Closed.
func (m *Monitor) Reserved(held bool) { m.reserved.Store(held) }

// WatchDisk measures the disk until ctx ends.
func (m *Monitor) WatchDisk(ctx context.Context, measure func() (free, size int64, err error)) {
	ticker := time.NewTicker(measureDisk)
	defer ticker.Stop()
	for {
		// If the free space is unknown, the level does not change.
		if free, size, err := measure(); err == nil {
			m.Measured(ctx, DiskStore, m.disk(free, size))
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (m *Monitor) disk(free, size int64) Usage {
	limit := min(size, countedDisk)
	return Usage{Used: max(limit-free, 0), Limit: limit, Spent: free < tight && !m.reserved.Load()}
}

// Admit returns nil if a write is carried out, and the error for its client otherwise.
func (m *Monitor) Admit(w Write) error {
	now := m.now.Load()
	if int(now.level)+int(w) <= int(Growth) {
		return nil
	}
	m.refused.WithLabelValues(w.String()).Inc()
	if now.level == Closed {
		return errs.New(errs.Unavailable,
			"the disk of the hub's data directory is full, and so is its reserve, so the hub is read-only; "+
				"the operator of the hub can free space, and it continues by itself").After(retryClosed)
	}
	percent := fmt.Sprintf("%.0f%%", 100*now.usage[now.store].share())
	limit := fmt.Sprintf("%.0f%%", 100*(floor(now.level)-slack))
	return errs.New(errs.InsufficientStorage,
		fmt.Sprintf("%s of the hub's %s is used, and %s until it is less than %s; delete what you do not need, and tell the operator of the hub",
			percent, now.store, written(now.level), limit),
		errs.Cause{Type: "StorageFull", Message: fmt.Sprintf("used: %s, limit: %s", percent, limit)})
}

// AdmitCreation returns an error while only Endings are written: nothing may be created then, not even by a
// controller, and no login is kept up to date. Controllers complete on a level below what was accepted.
func (m *Monitor) AdmitCreation() error { return m.Admit(Change) }

// Level returns what is written.
func (m *Monitor) Level() Level { return m.now.Load().level }

// Err returns an error for operators while a store is above a floor.
func (m *Monitor) Err(store string) error {
	now := m.now.Load()
	l := now.levels[store]
	if l == Open {
		return nil
	}
	u := now.usage[store]
	return fmt.Errorf("%d of %d bytes are used; reads are answered, %s until there is room", u.Used, u.Limit, written(l))
}

// WriteRight is a fencing right: writes fail while nothing is written.
func (m *Monitor) WriteRight() (until time.Time, err error) { return time.Time{}, m.Admit(Ending) }

// RunWhileOpen runs a func while anything is written, and again each time that this is so again.
func (m *Monitor) RunWhileOpen(ctx context.Context, run func(context.Context)) {
	for ctx.Err() == nil {
		now := m.now.Load()
		if now.level == Closed {
			select {
			case <-ctx.Done():
			case <-now.over:
			}
			continue
		}
		running, stop := context.WithCancel(ctx)
		var watching sync.WaitGroup
		watching.Go(func() { m.awaitClosed(running, stop) })
		run(running)
		stop()
		watching.Wait()
	}
}

// awaitClosed calls stop when nothing is written any more.
func (m *Monitor) awaitClosed(ctx context.Context, stop func()) {
	for {
		now := m.now.Load()
		if now.level == Closed {
			stop()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-now.over:
		}
	}
}

package usage

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

// Class is the class of the verb of a request.
type Class int

// The classes.
const (
	Read Class = iota
	Write
	Watch
)

// Counter counts requests. A nil Counter counts nothing.
type Counter struct {
	interval time.Duration
	clock    clock.Clock
	lost     prometheus.Counter

	mu sync.RWMutex
	// live has the Workspaces with requests since the last interval.
	live map[Workspace]*live

	// collecting is held while the counts are added to the ledger.
	collecting sync.Mutex
	ledger     ledger
}

// live is what was counted in a Workspace since the last collection.
type live struct {
	classes [Watch + 1]atomic.Int64
	out     atomic.Int64
	// open is the number of requests in progress: they have this live.
	open atomic.Int64

	mu       sync.Mutex
	callers  map[Caller]struct{}
	streams  map[*stream]struct{}
	streamed time.Duration
}

type stream struct {
	caller Caller
	since  time.Time
}

// NewCounter returns a Counter. It registers kedge_usage_lost_total.
func NewCounter(interval time.Duration, k clock.Clock, registry prometheus.Registerer) (*Counter, error) {
	c := &Counter{
		interval: interval, clock: k, live: map[Workspace]*live{},
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kedge_usage_lost_total", Help: "Rows of usage that this replica gave up because the database was down for too long.",
		}),
	}
	c.ledger = newLedger(c.startOf(k.Now()))
	return c, registry.Register(c.lost)
}

// Interval is the length of an interval.
func (c *Counter) Interval() time.Duration { return c.interval }

func (c *Counter) startOf(t time.Time) time.Time { return t.UTC().Truncate(c.interval) }

// Request is a request in progress.
type Request struct {
	c      *Counter
	live   *live
	stream *stream
}

// Begin counts a request. The caller must call End.
func (c *Counter) Begin(w Workspace, by Caller, class Class, streams bool) Request {
	if c == nil {
		return Request{}
	}
	l := c.enter(w)
	l.classes[class].Add(1)
	r := Request{c: c, live: l}
	if streams {
		r.stream = &stream{by, c.clock.Now()}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note(by)
	if streams {
		l.streams[r.stream] = struct{}{}
	}
	return r
}

// enter returns the counters of a Workspace with one more open request.
func (c *Counter) enter(w Workspace) *live {
	c.mu.RLock()
	l := c.live[w]
	if l != nil {
		l.open.Add(1)
	}
	c.mu.RUnlock()
	if l != nil {
		return l
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if l = c.live[w]; l == nil {
		l = &live{callers: map[Caller]struct{}{}, streams: map[*stream]struct{}{}}
		c.live[w] = l
	}
	l.open.Add(1)
	return l
}

// note adds a caller. l.mu is locked.
func (l *live) note(by Caller) {
	if len(l.callers) < maxCallers {
		l.callers[by] = struct{}{}
	}
}

// Out counts bytes that the client gets.
func (r Request) Out(n int) {
	if r.live != nil && n > 0 {
		r.live.out.Add(int64(n))
	}
}

// End ends a request.
func (r Request) End() {
	if r.live == nil {
		return
	}
	if r.stream != nil {
		r.live.mu.Lock()
		r.live.streamed += max(0, r.c.clock.Since(r.stream.since))
		delete(r.live.streams, r.stream)
		r.live.mu.Unlock()
	}
	r.live.open.Add(-1)
}

// take returns what was counted until now, and begins anew.
func (l *live) take(now time.Time) (counted Requests, callers map[Caller]struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.streams {
		l.streamed += max(0, now.Sub(s.since))
		s.since = now
		l.note(s.caller)
	}
	counted = Requests{
		Reads: l.classes[Read].Swap(0), Writes: l.classes[Write].Swap(0), Watches: l.classes[Watch].Swap(0),
		BytesOut: l.out.Swap(0), Streamed: l.streamed,
	}
	l.streamed = 0
	if len(l.callers) > 0 {
		callers, l.callers = l.callers, map[Caller]struct{}{}
	}
	return counted, callers
}

// Run begins the intervals until ctx ends.
func (c *Counter) Run(ctx context.Context) {
	for {
		c.collect()
		c.collecting.Lock()
		next := c.ledger.running.Add(c.interval)
		c.collecting.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-c.clock.After(next.Sub(c.clock.Now())):
		}
	}
}

// collect adds what was counted to the running interval, and begins the next one if it is time.
func (c *Counter) collect() {
	c.collecting.Lock()
	defer c.collecting.Unlock()
	now := c.clock.Now()
	c.mu.RLock()
	all := make(map[Workspace]*live, len(c.live))
	for w, l := range c.live {
		all[w] = l
	}
	c.mu.RUnlock()
	for w, l := range all {
		counted, callers := l.take(now)
		c.lost.Add(float64(c.ledger.count(w, counted, callers)))
	}
	// A clock that was set back begins no interval a second time.
	if starts := c.startOf(now); starts.After(c.ledger.running) {
		c.ledger.begin(starts)
		c.forgetIdle()
	}
}

// forgetIdle drops the counters without a request in progress.
func (c *Counter) forgetIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w, l := range c.live {
		// What ended after the collection is still in it.
		if l.open.Load() == 0 && l.idle() {
			delete(c.live, w)
		}
	}
}

func (l *live) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.callers) == 0 && l.streamed == 0 && l.out.Load() == 0
}

// Measured records what Workspaces store and what Organizations have, by UUID, in the running interval.
func (c *Counter) Measured(stored map[Workspace]Stored, sizes map[string]Size) {
	c.collecting.Lock()
	defer c.collecting.Unlock()
	c.lost.Add(float64(c.ledger.measure(stored, sizes)))
}

// Next returns up to limit rows of each kind that the database does not have, the oldest interval first. If these are
// all, everything up to asOf is in them.
func (c *Counter) Next(limit int) (b Batch, asOf time.Time, all bool) {
	asOf = c.clock.Now()
	c.collect()
	c.collecting.Lock()
	defer c.collecting.Unlock()
	b, all = c.ledger.next(limit)
	return b, asOf, all
}

// Written records that the database has the rows of a Batch. What was counted meanwhile is in a later one.
func (c *Counter) Written(b Batch) {
	c.collecting.Lock()
	defer c.collecting.Unlock()
	c.ledger.written(b)
}

package audit

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

const (
	// budgetWindow is the time after which an Organization has its budget again.
	budgetWindow = time.Minute
	// maxCounted is the number of kinds of writes that are counted by name; the others are "other".
	maxCounted = 64
	// maxCountedName is the length of the name of such a kind in JSON: all of them fit into an event.
	maxCountedName = 96
)

// Budget bounds the proxied writes with events of their own, for each Organization and minute: no tenant
// can push out of the files what others did. One event counts the rest.
type Budget struct {
	perMinute int
	clock     clock.WithTicker
	log       *Log
	counted   prometheus.Counter

	mu    sync.Mutex
	since time.Time
	spent map[payer]*spent
}

// payer is the Organization of a write. Outsiders pay for themselves, so that they cannot spend the budget
// of an Organization.
type payer struct{ org, outsider string }

type spent struct {
	requests, rest int
	counts         map[string]int
}

// NewBudget returns a Budget for a log. perMinute is the number of requests; 0 means no limit.
func NewBudget(perMinute int, c clock.WithTicker, log *Log) *Budget {
	return &Budget{perMinute: perMinute, clock: c, log: log, spent: map[payer]*spent{}, counted: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kedge_audit_counted_writes_total", Help: "Proxied writes above the budget of their Organization, which the audit log has as a number only.",
	})}
}

// Counted is the metric of the writes that have no events of their own.
func (b *Budget) Counted() prometheus.Collector { return b.counted }

// Take reports whether a proxied write has events of its own. It counts the write if not. While the log cannot be
// written every write asks it, so that none is carried out that only a number in memory reports.
func (b *Budget) Take(e Event) bool {
	if b == nil || b.perMinute == 0 || e.Resource == nil || b.log.Err() != nil {
		return true
	}
	by := payer{org: e.Org}
	if e.Outsider || e.Org == "" {
		by.outsider = e.Actor.User + e.Actor.Bot
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.renew(b.clock.Now())
	s, ok := b.spent[by]
	if !ok {
		s = &spent{counts: map[string]int{}}
		b.spent[by] = s
	}
	if s.requests < b.perMinute {
		s.requests++
		return true
	}
	what := e.Resource.Verb + " " + e.Resource.Resource
	if e.Resource.Group != "" {
		what += "." + e.Resource.Group
	}
	what = cut(what, maxCountedName)
	if _, known := s.counts[what]; !known && len(s.counts) >= maxCounted {
		what = "other"
	}
	b.counted.Inc()
	s.counts[what]++
	s.rest++
	return false
}

// renew begins a new minute once the last one is over.
func (b *Budget) renew(now time.Time) {
	if now.Sub(b.since) < budgetWindow {
		return
	}
	b.flush()
	b.since = now
}

// flush writes the events that count what had none.
func (b *Budget) flush() {
	for by, s := range b.spent {
		if s.rest > 0 {
			_ = b.log.Write(Event{
				ID: rand.Text(), Stage: StageOutcome, Actor: Actor{Kind: ActorHub}, Action: "kubernetes writes", Org: by.org, Object: by.outsider,
				Outsider: by.outsider != "" && by.org != "", Suppressed: s.rest, Facts: &Facts{Counts: s.counts},
			})
		}
	}
	clear(b.spent)
}

// Run writes what was counted, each minute and when ctx ends.
func (b *Budget) Run(ctx context.Context) {
	ticker := b.clock.NewTicker(budgetWindow)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			b.mu.Lock()
			b.flush()
			b.mu.Unlock()
			return
		case <-ticker.C():
			b.mu.Lock()
			b.renew(b.clock.Now())
			b.mu.Unlock()
		}
	}
}

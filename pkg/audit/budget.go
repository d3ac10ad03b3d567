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
	// budgetWindow is the time after which a payer has its budget again.
	budgetWindow = time.Minute
	// unchangedShare is the part of the budget of an Organization that a person or bot has for requests to the API
	// that change nothing: one in so many.
	unchangedShare = 10
	// countsWrites and countsUnchanged are the actions of the events that count the rest.
	countsWrites    = "kubernetes writes"
	countsUnchanged = "unchanged requests"
	// maxCounted is the number of kinds of writes that are counted by name; the others are "other".
	maxCounted = 64
	// maxCountedName is the length of the name of such a kind in JSON: all of them fit into an event.
	maxCountedName = 96
)

// Budget bounds the events of what tenants can send much of: the proxied writes of an Organization in a minute, and the
// requests of a person or bot to the API that change nothing. So no tenant can push out of the files what others did. One
// event counts the rest. Share bounds what changes rights.
type Budget struct {
	perMinute int
	clock     clock.WithTicker
	log       *Log
	counted   prometheus.Counter
	shares    *shares

	mu    sync.Mutex
	since time.Time
	spent map[payer]*spent
}

// payer is the Organization of a write. Outsiders pay for themselves, so that they cannot spend the budget
// of an Organization. So do those whose requests change nothing, because a request can name any.
type payer struct {
	org, actor string
	unchanged  bool
}

func payerOf(e Event) (p payer) {
	p.unchanged = e.Resource == nil
	if !p.unchanged {
		p.org = e.Org
	}
	if p.org == "" || e.Outsider {
		p.actor = e.Actor.User + e.Actor.Bot
	}
	return p
}

type spent struct {
	requests, rest int
	counts         map[string]int
}

// NewBudget returns a Budget for a log. perMinute is the number of proxied writes; 0 means no limit.
func NewBudget(perMinute int, c clock.WithTicker, log *Log) *Budget {
	return &Budget{
		perMinute: perMinute, clock: c, log: log, shares: newShares(log, c), spent: map[payer]*spent{},
		counted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kedge_audit_counted_writes_total",
			Help: "Proxied writes, and requests that changed nothing, above their budget: the audit log has their number only.",
		}),
	}
}

// Counted is the metric of the requests that have no events of their own.
func (b *Budget) Counted() prometheus.Collector { return b.counted }

// Take reports whether a request has events of its own: one that is neither a proxied write nor Unchanged always has. It
// counts the request if not. While the log cannot be written every write asks it, so that none is carried out that only a
// number in memory reports.
func (b *Budget) Take(e Event) bool {
	if b == nil || b.perMinute == 0 || e.Resource == nil && !e.Unchanged || b.log.Err() != nil {
		return true
	}
	by, limit := payerOf(e), b.perMinute
	if by.unchanged {
		limit = max(1, limit/unchangedShare)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.renew(b.clock.Now())
	s, ok := b.spent[by]
	if !ok {
		s = &spent{counts: map[string]int{}}
		b.spent[by] = s
	}
	if s.requests < limit {
		s.requests++
		return true
	}
	what := cut(kindOf(e), maxCountedName)
	if _, known := s.counts[what]; !known && len(s.counts) >= maxCounted {
		what = "other"
	}
	b.counted.Inc()
	s.counts[what]++
	s.rest++
	return false
}

// kindOf is what a request counts as.
func kindOf(e Event) string {
	if e.Resource == nil {
		return e.Action
	}
	what := e.Resource.Verb + " " + e.Resource.Resource
	if e.Resource.Group != "" {
		what += "." + e.Resource.Group
	}
	return what
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
		if s.rest == 0 {
			continue
		}
		action := countsWrites
		if by.unchanged {
			action = countsUnchanged
		}
		_ = b.log.Write(Event{
			ID: rand.Text(), Stage: StageOutcome, Actor: Actor{Kind: ActorHub}, Action: action, Org: by.org, Object: by.actor,
			Outsider: by.actor != "" && by.org != "", Suppressed: s.rest, Facts: &Facts{Counts: s.counts},
		})
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

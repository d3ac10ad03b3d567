package audit

import (
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/recent"
)

const (
	// orgShare and actorShare are the parts of the files of Rights, one in so many, that one Organization and one person or
	// bot may fill at once. shareTime is the time in which they get as much again. A program that repeats a thousand requests
	// in each hour, which mostly change nothing, is below them.
	orgShare, actorShare = 25, 50
	shareTime            = time.Hour
	// minShare is the smallest part, in bytes.
	minShare = 1 << 20
	// linesOfChange are the events of a change: the intent and the outcome of its request, and those of a controller that
	// carries it out.
	linesOfChange = 4
	// chained is the length of what the chain adds to an event.
	chained = 240
	// maxPayers is the number of Organizations, persons and bots whose shares are remembered, least recently seen first out.
	maxPayers = 10_000
)

// shares bound what one Organization, and one person or bot, has written into the files of Rights, so that nobody pushes
// what others did out of them. Nothing is left out: a change that is one too many is refused before it is made. That of an
// end is not, but it has events only if it ends something.
//
// The sizes follow from those of the files: with the defaults these hold 1100 MiB. A change takes 2.4 KB of that (four
// events of 600 bytes), or 70 KB with the longest lists. Without a bound, one person who repeats a change fills them in 16
// minutes at --writes-per-person, if kcp carries out as many, and in about a minute with the longest lists. With it, an
// Organization has 44 MiB (19 000 changes) in an hour, whatever its members do: it needs a day. One person or bot has
// 22 MiB (9600 changes) in an hour, and needs two days. Logins have a share of their own: a stolen token keeps nobody
// from the login that ends it.
//
// Twenty-five Organizations that collude, of at least fifty persons, need minutes: who may register decides about that
// (--registration). Each replica counts for itself. Controllers write on the leader what all replicas have accepted, so
// that of four replicas the files of the leader last ten hours. Two things are not bounded: what controllers do for a
// group of the identity provider that is mapped and unmapped, with two events for each of its people, and the tokens that
// sessions get. At --logins-per-session, 3 KB per second, one session alone needs four days.
type shares struct {
	clock      clock.PassiveClock
	org, actor float64
	refused    prometheus.Counter

	mu   sync.Mutex
	held *recent.Cache[string, *rate.Limiter]
}

func newShares(l *Log, c clock.PassiveClock) *shares {
	s := &shares{
		clock: c, held: recent.New[string, *rate.Limiter](maxPayers),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kedge_audit_refused_changes_total",
			Help: "Changes above the share that their person, bot or organization has of the audit log: refused, " +
				"or ends that are recorded only if they end something.",
		}),
	}
	if l.rights == nil || l.rights.file == nil || l.rights.file.options.MaxBackups == 0 {
		return s
	}
	o := l.rights.file.options
	all := float64(o.MaxSize) * (1 << 20) * float64(o.MaxBackups+1)
	s.org, s.actor = max(all/orgShare, minShare), max(all/actorShare, minShare)
	return s
}

// Refused is the metric of the changes that were above a share.
func (b *Budget) Refused() prometheus.Collector { return b.shares.refused }

// Share takes the events of a change from the shares that its actor and, unless the actor is an Outsider, its Organization
// have of the files of Rights. e is the intent. If there is too little it takes nothing, and returns the time until there is
// enough. No file is removed of a log that has no files, or keeps all: it has no shares.
func (b *Budget) Share(e Event) (wait time.Duration, ok bool) {
	if b == nil || b.shares.org == 0 {
		return 0, true
	}
	return b.shares.take(e)
}

// LogsIn reports whether an action is one of a login.
func LogsIn(action string) bool {
	for _, word := range []string{"login ", "confirm ", "deny "} {
		if strings.HasPrefix(action, word) {
			return true
		}
	}
	return false
}

// payment is what an event takes from a share.
type payment struct {
	from  *rate.Limiter
	bytes int
}

func (s *shares) take(e Event) (wait time.Duration, ok bool) {
	line, err := e.bounded().line(maxLine)
	if err != nil {
		// Write reports it.
		return 0, true
	}
	size := float64(linesOfChange * (len(line) + chained))
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	payer := "actor "
	if LogsIn(e.Action) {
		payer = "login "
	}
	payments := []payment{s.of(payer+e.Actor.User+e.Actor.Bot, s.actor, size)}
	if e.Org != "" && !e.Outsider {
		payments = append(payments, s.of("org "+e.Org, s.org, size))
	}
	for _, p := range payments {
		if missing := float64(p.bytes) - p.from.TokensAt(now); missing > 0 {
			wait = max(wait, time.Duration(missing/float64(p.from.Limit())*float64(time.Second)))
		}
	}
	if wait > 0 {
		s.refused.Inc()
		return wait, false
	}
	for _, p := range payments {
		p.from.AllowN(now, p.bytes)
	}
	return 0, true
}

// of returns the share of a payer, with what it pays: the largest change costs no more than the whole share.
func (s *shares) of(payer string, share, size float64) payment {
	return payment{bytes: int(min(size, share)), from: s.held.Change(payer, func(held *rate.Limiter) *rate.Limiter {
		if held != nil {
			return held
		}
		return rate.NewLimiter(rate.Limit(share/shareTime.Seconds()), int(share))
	})}
}

package httpmw

import (
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/recent"
)

const (
	// maxLimited is the number of persons or peers whose rates a limit keeps, least recently
	// seen first out.
	maxLimited = 10_000
	// burstSeconds is the burst of each rate, in seconds of it.
	burstSeconds = 10
)

// Limits makes the limits of clients and counts what they refuse.
type Limits struct {
	clock    clock.PassiveClock
	registry prometheus.Registerer
	refused  *prometheus.CounterVec
}

// NewLimits registers the metric of the limits.
func NewLimits(c clock.PassiveClock, registry prometheus.Registerer) (*Limits, error) {
	l := &Limits{
		clock: c, registry: registry,
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kedge_limited_total", Help: "Connections, requests and streams refused by a limit, by the limit."}, []string{"limit"}),
	}
	if err := registry.Register(l.refused); err != nil {
		return nil, fmt.Errorf("register the metric of limits: %w", err)
	}
	return l, nil
}

// Refused counts a refusal by a limit that another package enforces.
func (l *Limits) Refused(limit string) { l.refused.WithLabelValues(limit).Inc() }

// PerPerson limits each person to perSecond requests, with bursts of ten seconds' worth. It answers
// 429 with Retry-After to more. Zero means no limit. It runs after Authenticate.
func (l *Limits) PerPerson(limit string, perSecond float64) func(http.Handler) http.Handler {
	buckets := l.buckets(limit, perSecond)
	return func(next http.Handler) http.Handler {
		if perSecond == 0 {
			return next
		}
		return httpapi.Handler(func(w http.ResponseWriter, r *http.Request) error {
			if err := buckets.take(CallerOf(r).Key()); err != nil {
				return err
			}
			next.ServeHTTP(w, r)
			return nil
		})
	}
}

// WritesPerPerson is PerPerson for the requests that may write; others pass.
func (l *Limits) WritesPerPerson(limit string, perSecond float64) func(http.Handler) http.Handler {
	limited := l.PerPerson(limit, perSecond)
	return func(next http.Handler) http.Handler {
		write := limited(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if MayWrite(r) {
				write.ServeHTTP(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// buckets are the token buckets of one limit, one for each key.
type buckets struct {
	perSecond rate.Limit
	burst     int
	clock     clock.PassiveClock
	refused   prometheus.Counter
	recent    *recent.Cache[any, *rate.Limiter]
}

// buckets returns the buckets of a limit. Zero perSecond means no limit.
func (l *Limits) buckets(limit string, perSecond float64) *buckets {
	limiters := recent.New[any, *rate.Limiter](maxLimited)
	b := &buckets{perSecond: rate.Inf, clock: l.clock, refused: l.refused.WithLabelValues(limit), recent: limiters}
	if perSecond > 0 {
		b.perSecond, b.burst = rate.Limit(perSecond), int(math.Ceil(perSecond*burstSeconds))
	}
	return b
}

func (b *buckets) of(key any) *rate.Limiter {
	return b.recent.Change(key, func(held *rate.Limiter) *rate.Limiter {
		if held != nil {
			return held
		}
		return rate.NewLimiter(b.perSecond, b.burst)
	})
}

// take takes one request out of the bucket of a key. A refused request takes nothing.
func (b *buckets) take(key any) error {
	if b.perSecond == rate.Inf || b.of(key).AllowN(b.clock.Now(), 1) {
		return nil
	}
	return b.refuse()
}

// empty reports whether take would refuse.
func (b *buckets) empty(key any) bool { return b.of(key).TokensAt(b.clock.Now()) < 1 }

// spend takes one request out of the bucket of a key, if it has one.
func (b *buckets) spend(key any) { b.of(key).AllowN(b.clock.Now(), 1) }

// giveBack returns to the bucket of a key what one take has taken.
func (b *buckets) giveBack(key any) {
	if b.perSecond != rate.Inf {
		b.of(key).AllowN(b.clock.Now(), -1)
	}
}

// refuse counts a refusal and returns its error.
func (b *buckets) refuse() error {
	return tooMany(b.refused, time.Duration(float64(time.Second)/float64(b.perSecond)))
}

// tooMany counts a refusal and returns its error.
func tooMany(refused prometheus.Counter, retryAfter time.Duration) error {
	refused.Inc()
	return errs.New(errs.TooManyRequests, "too many requests of this kind; wait a moment and try again").After(retryAfter)
}

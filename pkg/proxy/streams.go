package proxy

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

// streamRetryAfter is the Retry-After of a stream over a limit.
const streamRetryAfter = 5 * time.Second

// streamKey is the metadata.name of a User and the ID of a logical cluster. All streams of
// one key depend on the same right.
type streamKey struct{ user, cluster string }

// streams are the open streams. A stream ends with its request, or when the right to it
// ends. Long-running ones also end when the hub stops.
type streams struct {
	limits     StreamLimits
	gauge      prometheus.Gauge
	revocation prometheus.Histogram
	// rechecks counts the calls of of.
	rechecks atomic.Uint64

	mu     sync.Mutex
	closed bool
	// open has the first stream of each person; the others are linked to it. Every request
	// is added and removed, so neither allocates.
	open map[string]*stream
	// longRunning is the number of long-running streams, longRunningOf that of each caller
	// who has one, and longRunningBy that of each payer.
	longRunning                  int
	longRunningOf, longRunningBy map[string]int
}

// StreamLimits are the limits of long-running streams. Zero means no limit.
type StreamLimits struct {
	// All is the number of open streams, PerPerson the number of those of one person. The last quarter of All is for
	// Organizations of people with less than a sixteenth of it: the bots of one are no bound on what it opens.
	All, PerPerson int
	// Refused is called with the name of the limit for every stream that one refuses.
	Refused func(limit string)
}

func newStreams(metrics prometheus.Registerer, limits StreamLimits) (*streams, error) {
	s := &streams{
		limits: limits,
		gauge: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kedge_proxy_streams", Help: "Open watches and upgraded connections through the proxy.",
		}),
		revocation: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "kedge_proxy_revocation_seconds",
			Help:    "Time in seconds from the moment that the hub learned of a revoked right to the end of a stream that depended on it.",
			Buckets: []float64{0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5},
		}),
		open: map[string]*stream{}, longRunningOf: map[string]int{}, longRunningBy: map[string]int{},
	}
	for _, c := range []prometheus.Collector{s.gauge, s.revocation} {
		if err := metrics.Register(c); err != nil {
			return nil, fmt.Errorf("register proxy metrics: %w", err)
		}
	}
	return s, nil
}

// add registers a stream. The caller must call remove.
func (s *streams) add(added *stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if added.longRunning {
		if s.closed {
			return stopping()
		}
		if err := s.limit(added.key.user, added.payer); err != nil {
			return err
		}
		s.longRunning++
		s.longRunningOf[added.key.user]++
		s.longRunningBy[added.payer]++
		s.gauge.Inc()
	}
	if first := s.open[added.key.user]; first != nil {
		first.prev, added.next = added, first
	}
	s.open[added.key.user] = added
	return nil
}

// org is the UUID of the Organization of the Workspace.
func (s *stream) org() string { return s.opened.Workspace.OrgUUID }

// limit refuses a further long-running stream of a person over a limit. The caller holds s.mu.
func (s *streams) limit(user, payer string) error {
	switch l := s.limits; {
	case l.PerPerson > 0 && s.longRunningOf[user] >= l.PerPerson:
		l.Refused("streams_per_person")
		return tooMany("you have too many watches, followed logs and sessions open; close one first")
	case l.All > 0 && s.longRunning >= l.All:
		l.Refused("streams")
		return tooMany("the hub has too many watches, followed logs and sessions open; try again later")
	case l.All/reserve > 0 && s.longRunning >= l.All-l.All/reserve && s.longRunningBy[payer] >= max(l.All/little, 1):
		l.Refused("streams_per_org")
		return tooMany("your organization, with others of its creator, has too many watches, followed logs and sessions open for what the hub has left; " +
			"close some first")
	}
	return nil
}

func tooMany(message string) error {
	return errs.New(errs.TooManyRequests, message).After(streamRetryAfter)
}

func (s *streams) remove(removed *stream) {
	removed.cancel()
	s.unlink(removed)
	if removed.longRunning {
		s.gauge.Dec()
	}
	if e := removed.state.Load(); !e.learnedAt.IsZero() {
		s.revocation.Observe(time.Since(e.learnedAt).Seconds())
	}
}

func (s *streams) unlink(removed *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if removed.longRunning {
		s.longRunning--
		take(s.longRunningOf, removed.key.user)
		take(s.longRunningBy, removed.payer)
	}
	if removed.next != nil {
		removed.next.prev = removed.prev
	}
	switch {
	case removed.prev != nil:
		removed.prev.next = removed.next
	case removed.next != nil:
		s.open[removed.key.user] = removed.next
	default:
		delete(s.open, removed.key.user)
	}
}

// take counts one less.
func take(of map[string]int, key string) {
	if of[key]--; of[key] == 0 {
		delete(of, key)
	}
}

// of returns the open streams of a caller, or of everybody if user is empty. It increments
// rechecks first: a request that passed the gate earlier and is not registered yet sees the
// new count after add, and checks its right again.
func (s *streams) of(user string) map[streamKey][]*stream {
	s.rechecks.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[streamKey][]*stream{}
	every := func(streamKey) bool { return true }
	if user != "" {
		s.collect(found, user, every)
		return found
	}
	for user := range s.open {
		s.collect(found, user, every)
	}
	return found
}

// in returns the open streams of everybody in logical clusters. It increments rechecks, as of
// does.
func (s *streams) in(clusters []string) map[streamKey][]*stream {
	wanted := sets.New(clusters...)
	s.rechecks.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[streamKey][]*stream{}
	for user := range s.open {
		s.collect(found, user, func(k streamKey) bool { return wanted.Has(k.cluster) })
	}
	return found
}

// collect adds the selected streams of one caller to found. The caller holds s.mu.
func (s *streams) collect(found map[streamKey][]*stream, user string, selected func(streamKey) bool) {
	for o := s.open[user]; o != nil; o = o.next {
		if selected(o.key) {
			found[o.key] = append(found[o.key], o)
		}
	}
}

// close terminates the long-running streams and refuses new ones.
func (s *streams) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for _, open := range s.of("") {
		for _, o := range open {
			if o.longRunning {
				o.end(termination{cause: stopping()})
			}
		}
	}
}

func stopping() error {
	return errs.New(errs.Unavailable, "the hub is stopping; try again").After(time.Second)
}

// Streaming reports whether StreamLimits count a request that passed Shape.
func Streaming(r *http.Request) bool {
	info, ok := request.RequestInfoFrom(r.Context())
	return ok && streaming(r, info)
}

// streaming reports whether kcp may keep the answer to a request open: a watch, a followed
// log or an upgrade.
func streaming(r *http.Request, info *request.RequestInfo) bool {
	return info.Verb == "watch" || info.Subresource == "log" && follows(r.URL) || connects(info) && upgrades(r.Header)
}

// connects reports whether a request is for a connection that goes on after its answer. Every other one is counted as
// what its path and verb say: a header of the client does not choose the limit.
func connects(info *request.RequestInfo) bool {
	switch info.Subresource {
	case "exec", "attach", "portforward", "proxy":
		return true
	}
	return false
}

// follows reports whether a query has follow=true. Kubernetes takes every value but
// "0" and "false" for true.
func follows(u *url.URL) bool {
	v := u.Query()["follow"]
	return len(v) > 0 && v[0] != "0" && !strings.EqualFold(v[0], "false")
}

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
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

// place is whom a stream serves (metadata.name of the User) and the ID of the
// cluster that it comes from: the right to a stream is a right of the one in the
// other.
type place struct{ user, cluster string }

// streams are the open streams. They end when their client or kcp ends them, or when
// their right ends; endless ones also when the hub stops.
type streams struct {
	gauge      prometheus.Gauge
	revocation prometheus.Histogram
	// looks counts how often the open streams were looked at.
	looks atomic.Uint64

	mu     sync.Mutex
	closed bool
	// open are by user, so that one person's are found without looking at all: the
	// first of a list. Every request is added and removed, so neither allocates.
	open map[string]*stream
}

func newStreams(metrics prometheus.Registerer) (*streams, error) {
	s := &streams{
		gauge: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kedge_proxy_streams", Help: "Open watches and upgraded connections through the proxy.",
		}),
		revocation: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "kedge_proxy_revocation_seconds",
			Help:    "Time in seconds from the moment that the hub learned of a revoked right to the end of a stream that depended on it.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 9),
		}),
		open: map[string]*stream{},
	}
	for _, c := range []prometheus.Collector{s.gauge, s.revocation} {
		if err := metrics.Register(c); err != nil {
			return nil, fmt.Errorf("register proxy metrics: %w", err)
		}
	}
	return s, nil
}

// add makes a stream known. remove must be called.
func (s *streams) add(added *stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if added.endless {
		if s.closed {
			return stopping()
		}
		s.gauge.Inc()
	}
	if first := s.open[added.at.user]; first != nil {
		first.before, added.behind = added, first
	}
	s.open[added.at.user] = added
	return nil
}

func (s *streams) remove(gone *stream) {
	gone.cancel()
	s.unlink(gone)
	if gone.endless {
		s.gauge.Dec()
	}
	if e := gone.over.Load(); !e.learned.IsZero() {
		s.revocation.Observe(time.Since(e.learned).Seconds())
	}
}

func (s *streams) unlink(gone *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if gone.behind != nil {
		gone.behind.before = gone.before
	}
	switch {
	case gone.before != nil:
		gone.before.behind = gone.behind
	case gone.behind != nil:
		s.open[gone.at.user] = gone.behind
	default:
		delete(s.open, gone.at.user)
	}
}

// of returns the open streams of a person, of everybody where user is empty. Whoever
// asked the gate before that, and is not among them yet, finds looks changed when
// they are.
func (s *streams) of(user string) map[place][]*stream {
	s.looks.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[place][]*stream{}
	if user != "" {
		s.collect(found, user)
		return found
	}
	for user := range s.open {
		s.collect(found, user)
	}
	return found
}

// collect adds the streams of one person to found; s.mu is held.
func (s *streams) collect(found map[place][]*stream, user string) {
	for o := s.open[user]; o != nil; o = o.behind {
		found[o.at] = append(found[o.at], o)
	}
}

// close ends what does not end by itself and lets none of it begin any more.
func (s *streams) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for _, open := range s.of("") {
		for _, o := range open {
			if o.endless {
				o.end(ending{cause: stopping()})
			}
		}
	}
}

func stopping() error {
	e := errs.New(errs.Unavailable, "the hub is stopping; try again")
	e.RetryAfter = time.Second
	return e
}

// streaming reports whether kcp may keep the answer to a request open: that of a watch,
// of a log that is followed, and of an upgrade.
func streaming(r *http.Request, info *request.RequestInfo) bool {
	return upgrades(r.Header) || info.Verb == "watch" || info.Subresource == "log" && follows(r.URL)
}

// follows reports whether a query has follow=true. Kubernetes takes every value but
// "0" and "false" for true.
func follows(u *url.URL) bool {
	v := u.Query()["follow"]
	return len(v) > 0 && v[0] != "0" && !strings.EqualFold(v[0], "false")
}

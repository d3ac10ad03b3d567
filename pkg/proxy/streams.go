package proxy

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// place is whom a stream serves (metadata.name of the User) and the ID of the
// cluster that it comes from: the right to a stream is a right of the one in the
// other.
type place struct{ user, cluster string }

// streams are the open streams. They end when their client or kcp ends them, when
// their right ends, or when the hub stops.
type streams struct {
	gauge      prometheus.Gauge
	revocation prometheus.Histogram

	mu     sync.Mutex
	closed bool
	// open are by user and then by cluster, so that one person's are found without
	// looking at all.
	open map[string]map[string]map[*stream]struct{}
}

func newStreams(metrics prometheus.Registerer) (*streams, error) {
	s := &streams{
		gauge: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kedge_proxy_streams", Help: "Watches and upgraded connections that are open through the proxy.",
		}),
		revocation: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "kedge_proxy_revocation_seconds",
			Help:    "From the hub learning that a right ended until the stream was closed.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 9),
		}),
		open: map[string]map[string]map[*stream]struct{}{},
	}
	for _, c := range []prometheus.Collector{s.gauge, s.revocation} {
		if err := metrics.Register(c); err != nil {
			return nil, fmt.Errorf("register proxy metrics: %w", err)
		}
	}
	return s, nil
}

// add begins a stream, whose context ends with it. remove must be called.
func (s *streams) add(ctx context.Context, at place, opened tenancy.Entry) (context.Context, *stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, stopping()
	}
	ctx, cancel := context.WithCancel(ctx)
	added := &stream{at: at, opened: opened, cancel: cancel}
	clusters := s.open[at.user]
	if clusters == nil {
		clusters = map[string]map[*stream]struct{}{}
		s.open[at.user] = clusters
	}
	if clusters[at.cluster] == nil {
		clusters[at.cluster] = map[*stream]struct{}{}
	}
	clusters[at.cluster][added] = struct{}{}
	s.gauge.Inc()
	return ctx, added, nil
}

func (s *streams) remove(gone *stream) {
	gone.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	clusters := s.open[gone.at.user]
	delete(clusters[gone.at.cluster], gone)
	if len(clusters[gone.at.cluster]) == 0 {
		delete(clusters, gone.at.cluster)
	}
	if len(clusters) == 0 {
		delete(s.open, gone.at.user)
	}
	s.gauge.Dec()
	if e := gone.over.Load(); e != nil && !e.learned.IsZero() {
		s.revocation.Observe(time.Since(e.learned).Seconds())
	}
}

// of returns the open streams of a person, of everybody where user is empty.
func (s *streams) of(user string) map[place][]*stream {
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
	for cluster, open := range s.open[user] {
		found[place{user, cluster}] = slices.Collect(maps.Keys(open))
	}
}

// close ends all streams and lets none begin any more.
func (s *streams) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for _, open := range s.of("") {
		for _, o := range open {
			o.end(&ending{cause: stopping()})
		}
	}
}

func stopping() error {
	e := errs.New(errs.Unavailable, "the hub is stopping; try again")
	e.RetryAfter = time.Second
	return e
}

// streaming tells whether kcp may take a request for one that does not end by
// itself. It reads the request as kcp does.
func streaming(h http.Header, rest, query string) bool {
	return upgrades(h) || watchPath(rest) || query != "" && watchQuery(query)
}

// watchPath finds /api/{version}/watch/… and /apis/{group}/{version}/watch/…,
// the old spelling of a watch.
func watchPath(rest string) bool {
	after := 2
	path, ok := strings.CutPrefix(rest, "/api/")
	if !ok {
		after = 3
		if path, ok = strings.CutPrefix(rest, "/apis/"); !ok {
			return false
		}
	}
	for range after - 1 {
		_, path, _ = strings.Cut(path, "/")
	}
	return strings.HasPrefix(path, "watch/")
}

// watchQuery finds the parameters that keep an answer open. To kcp everything
// but absence, "0" and "false" is true.
func watchQuery(query string) bool {
	values, _ := url.ParseQuery(query)
	for _, name := range [...]string{"watch", "follow"} {
		if v := values[name]; len(v) > 0 && v[0] != "0" && !strings.EqualFold(v[0], "false") {
			return true
		}
	}
	return false
}

package proxy

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

// place is whom a stream serves (metadata.name of the User) and the ID of the
// cluster that it comes from: the right to a stream is a right of the one in the
// other.
type place struct{ user, cluster string }

// streams are the open streams. They end when their client ends them, or when
// end is called.
type streams struct {
	gauge prometheus.Gauge

	mu     sync.Mutex
	closed bool
	open   map[place]map[*stream]struct{}
}

type stream struct{ cancel context.CancelCauseFunc }

// add begins a stream. Its context ends with a cause that is the answer to a
// client who has none yet. remove must be called.
func (s *streams) add(ctx context.Context, at place) (_ context.Context, remove func(), err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	added := &stream{cancel: cancel}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		cancel(nil)
		return nil, nil, stopping()
	}
	if s.open[at] == nil {
		s.open[at] = map[*stream]struct{}{}
	}
	s.open[at][added] = struct{}{}
	s.gauge.Inc()
	return ctx, func() { s.remove(at, added) }, nil
}

func (s *streams) remove(at place, ended *stream) {
	ended.cancel(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open[at], ended)
	if len(s.open[at]) == 0 {
		delete(s.open, at)
	}
	s.gauge.Dec()
}

// close ends all streams and lets none begin any more.
func (s *streams) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for at := range s.open {
		s.end(at, stopping())
	}
}

// end ends the streams of one place; s.mu is held.
func (s *streams) end(at place, cause error) {
	for open := range s.open[at] {
		open.cancel(cause)
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

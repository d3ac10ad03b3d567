package transport

import (
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// calls measures the hub's own requests to kcp.
type calls struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec

	mu sync.Mutex
	// serving are the certificates that servers have answered with last, by host: the shards of a
	// kcp have their own.
	serving map[string]served
}

// served is when a serving certificate was seen last, and when it expires.
type served struct{ seen, expires time.Time }

// remembered is how long the certificate of a server counts that does not answer any more. Watches
// last some minutes, so that a server that is there answers more often.
const remembered = time.Hour

func newCalls() *calls {
	return &calls{
		serving: map[string]served{},
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kedge_kcp_requests_total",
			Help: "Requests of the hub itself to kcp, by HTTP method and status code. Proxied requests are not counted.",
		}, []string{"method", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "kedge_kcp_request_duration_seconds",
			Help:    "Time in seconds from a request of the hub itself to kcp to the headers of the answer, by HTTP method.",
			Buckets: prometheus.ExponentialBuckets(0.001, 3, 10),
		}, []string{"method"}),
	}
}

func (c *calls) register(r prometheus.Registerer) error {
	return errors.Join(r.Register(c.requests), r.Register(c.duration))
}

// measure is the layer that counts what is sent. The code of a request without an answer is error.
func (c *calls) measure(next http.RoundTripper) http.RoundTripper {
	return measured{next: next, calls: c}
}

type measured struct {
	next  http.RoundTripper
	calls *calls
}

func (m measured) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	response, err := m.next.RoundTrip(r)
	m.calls.duration.WithLabelValues(r.Method).Observe(time.Since(began).Seconds())
	code := "error"
	if err == nil {
		code = strconv.Itoa(response.StatusCode)
		if response.TLS != nil && len(response.TLS.PeerCertificates) > 0 {
			m.calls.answered(r.URL.Host, response.TLS.PeerCertificates[0].NotAfter)
		}
	}
	m.calls.requests.WithLabelValues(r.Method, code).Inc()
	return response, err
}

func (c *calls) answered(host string, expires time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serving[host] = served{seen: time.Now(), expires: expires}
}

// ServingNotAfter returns the time at which the first of the certificates expires that kcp serves
// with, or the zero time before the first answer.
func (t *Transport) ServingNotAfter() (first time.Time) {
	c := t.calls
	c.mu.Lock()
	defer c.mu.Unlock()
	for host, s := range c.serving {
		switch {
		case time.Since(s.seen) > remembered:
			delete(c.serving, host)
		case first.IsZero() || s.expires.Before(first):
			first = s.expires
		}
	}
	return first
}

// ClientCertificate returns the client certificate of the hub in PEM, or nothing if it has none.
func (t *Transport) ClientCertificate() []byte {
	t.connections.mu.Lock()
	defer t.connections.mu.Unlock()
	return t.wire.config.CertData
}

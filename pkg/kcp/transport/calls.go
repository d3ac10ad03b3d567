package transport

import (
	"errors"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// calls measures the hub's own requests to kcp.
type calls struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	// expires is the time at which the serving certificate of the last answer expires, in
	// seconds since 1970, or 0.
	expires atomic.Int64
}

func newCalls() *calls {
	return &calls{
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
			m.calls.expires.Store(response.TLS.PeerCertificates[0].NotAfter.Unix())
		}
	}
	m.calls.requests.WithLabelValues(r.Method, code).Inc()
	return response, err
}

// ServingNotAfter returns the time at which the certificate expires that kcp serves with, or the zero
// time before the first answer.
func (t *Transport) ServingNotAfter() time.Time {
	if at := t.calls.expires.Load(); at != 0 {
		return time.Unix(at, 0)
	}
	return time.Time{}
}

// ClientCertificate returns the client certificate of the hub in PEM, or nothing if it has none.
func (t *Transport) ClientCertificate() []byte {
	t.connections.mu.Lock()
	defer t.connections.mu.Unlock()
	return t.wire.config.CertData
}

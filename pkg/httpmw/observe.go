package httpmw

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/log"
)

// RequestIDHeader is the header of the request id, in requests and answers.
const RequestIDHeader = "X-Request-Id"

var saneID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// Metrics are the metrics of requests.
type Metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
	// series has those of the labels that were seen. prometheus hashes and compares labels each time.
	series sync.Map
}

// NewMetrics registers the metrics of requests. They are labelled by route pattern, never by
// path.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kedge_http_requests_total", Help: "Requests answered, by route pattern, HTTP method and status code."}, []string{"route", "method", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "kedge_http_request_duration_seconds", Help: "Time in seconds from a request to the end of its answer, watches and upgraded connections included, by route pattern and HTTP method.", Buckets: prometheus.ExponentialBuckets(0.0005, 3, 11)}, []string{"route", "method"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "kedge_http_requests_in_flight", Help: "Requests in progress, watches and upgraded connections included."}),
	}
	for _, c := range []prometheus.Collector{m.requests, m.duration, m.inFlight} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register HTTP metrics: %w", err)
		}
	}
	return m, nil
}

// Observe assigns a request id and a logger, finds the peer, counts and logs the request, and
// converts a panic to a 500. The log has the client's own request id, too, if it is well-formed.
// Query and other headers are never logged, because they can contain secrets.
func Observe(logger *zap.Logger, m *Metrics, trusted TrustedProxies) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			began := time.Now()
			from := &origin{peer: trusted.peer(r), id: Identify(w), clientID: clientID(r)}
			fields := []zap.Field{zap.String("request", from.id)}
			if from.clientID != "" {
				fields = append(fields, zap.String("clientRequest", from.clientID))
			}
			ctx := log.Into(r.Context(), logger, fields...)
			r = r.WithContext(context.WithValue(ctx, originKey{}, from))
			wrapped := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
			m.inFlight.Inc()
			defer func() {
				m.inFlight.Dec()
				p := recover()
				if p != nil && !aborted(p) {
					log.From(ctx).Error("panic", zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
					if wrapped.Status() == 0 {
						httpapi.WriteError(wrapped, r, errs.New(errs.Internal, ""))
					}
				}
				m.done(logger, r, wrapped.Status(), time.Since(began))
				if p != nil && aborted(p) {
					panic(p)
				}
			}()
			next.ServeHTTP(wrapped, r)
		})
	}
}

// Identify sets the request id of the answer to a new one and returns it. A client cannot choose
// it, so that no request can pass for another one in the log.
func Identify(w http.ResponseWriter) string {
	id := rand.Text()
	w.Header().Set(RequestIDHeader, id)
	return id
}

// clientID returns the request id that the client sent, or an empty string if there is none or it
// is not well-formed.
func clientID(r *http.Request) string {
	if id := r.Header.Get(RequestIDHeader); saneID.MatchString(id) {
		return id
	}
	return ""
}

func aborted(p any) bool {
	err, ok := p.(error)
	return ok && errors.Is(err, http.ErrAbortHandler)
}

func (m *Metrics) done(logger *zap.Logger, r *http.Request, status int, took time.Duration) {
	if status == 0 {
		status = http.StatusOK
	}
	route, method := patternOf(r), methodOf(r)
	m.count(answered{route, method, status}, took)
	level := zap.DebugLevel
	if method != http.MethodGet && method != http.MethodHead || status >= http.StatusInternalServerError {
		level = zap.InfoLevel
	}
	if logger.Core().Enabled(level) {
		log.From(r.Context()).Log(level, "request",
			zap.String("route", route), zap.String("method", method), zap.Int("status", status), zap.Duration("took", took))
	}
}

// answered are the labels of a request. There are as many as routes, methods and codes.
type answered struct {
	route, method string
	status        int
}

// series are the metrics of some labels.
type series struct {
	requests prometheus.Counter
	duration prometheus.Observer
}

func (m *Metrics) count(labels answered, took time.Duration) {
	known, ok := m.series.Load(labels)
	if !ok {
		known, _ = m.series.LoadOrStore(labels, series{
			m.requests.WithLabelValues(labels.route, labels.method, strconv.Itoa(labels.status)),
			m.duration.WithLabelValues(labels.route, labels.method),
		})
	}
	of := known.(series)
	of.requests.Inc()
	of.duration.Observe(took.Seconds())
}

// patternOf returns the pattern of the route of a request that was served.
func patternOf(r *http.Request) string {
	if c := chi.RouteContext(r.Context()); c != nil && c.RoutePattern() != "" {
		return c.RoutePattern()
	}
	return "unmatched"
}

// methodOf returns the HTTP method of a request, or "other" if it is none of the usual ones.
func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return r.Method
	}
	return "other"
}

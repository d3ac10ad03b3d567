package tracing

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/zap"
)

const (
	// queueSize is the number of spans that wait for the collector at most.
	queueSize = 2048
	// exportTimeout is the time that the collector has for a batch, further attempts included.
	exportTimeout = 10 * time.Second
	// maxAnswer is the number of bytes that are read of an answer of the collector.
	maxAnswer = 4 << 10
	// tracesPath is the path at which a collector takes traces.
	tracesPath = "/v1/traces"
)

// newExporter returns what sends spans, and what closes its connections.
func newExporter(ctx context.Context, o Options) (exporter sdktrace.SpanExporter, closeIdle func(), err error) {
	own := http.DefaultTransport.(*http.Transport).Clone()
	own.TLSClientConfig = &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12}
	exporter, err = otlptracehttp.New(ctx,
		otlptracehttp.WithEndpointURL(strings.TrimSuffix(o.Endpoint, "/")+tracesPath),
		otlptracehttp.WithHTTPClient(&http.Client{
			Transport: brief{own}, Timeout: exportTimeout,
			// What a span goes to is what the operator has named.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
			Enabled: true, InitialInterval: time.Second, MaxInterval: 5 * time.Second, MaxElapsedTime: exportTimeout,
		}),
	)
	if err != nil {
		return nil, nil, fmt.Errorf("make the exporter of spans: %w", err)
	}
	return exporter, own.CloseIdleConnections, nil
}

// brief reads no more of an answer than its beginning: the exporter keeps all of it in memory.
type brief struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b brief) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(r)
	if err == nil {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, maxAnswer), response.Body}
	}
	return response, err
}

// queue is a SpanProcessor in front of the SDK's, and the exporter behind it. It knows how many spans are between
// the two, so that it counts each that is dropped: the SDK does not tell.
type queue struct {
	logger    *zap.Logger
	exporter  sdktrace.SpanExporter
	closeIdle func()
	batches   sdktrace.SpanProcessor
	waiting   atomic.Int64
	// life ends when nothing more is sent.
	life    context.Context //nolint:containedctx // a signal, not the context of a request
	abandon context.CancelFunc
	// failing is true after a batch that was not sent. Only the goroutine of batches uses it.
	failing           bool
	exported, dropped prometheus.Counter
}

func newQueue(logger *zap.Logger, exporter sdktrace.SpanExporter, closeIdle func(), metrics prometheus.Registerer) (*queue, error) {
	q := &queue{
		logger: logger, exporter: exporter, closeIdle: closeIdle,
		exported: prometheus.NewCounter(prometheus.CounterOpts{Name: "kedge_trace_spans_exported_total",
			Help: "Spans that the collector of --otlp-endpoint has taken."}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{Name: "kedge_trace_spans_dropped_total",
			Help: "Spans that were dropped, because too many waited or the collector of --otlp-endpoint did not take them."}),
	}
	if err := errors.Join(metrics.Register(q.exported), metrics.Register(q.dropped)); err != nil {
		return nil, fmt.Errorf("register the metrics of tracing: %w", err)
	}
	q.life, q.abandon = context.WithCancel(context.Background())
	q.batches = sdktrace.NewBatchSpanProcessor(exports{q}, sdktrace.WithMaxQueueSize(queueSize), sdktrace.WithExportTimeout(2*exportTimeout))
	return q, nil
}

// OnStart implements sdktrace.SpanProcessor.
func (q *queue) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements sdktrace.SpanProcessor. It never blocks.
func (q *queue) OnEnd(s sdktrace.ReadOnlySpan) {
	if q.waiting.Add(1) > queueSize {
		q.waiting.Add(-1)
		q.dropped.Inc()
		return
	}
	q.batches.OnEnd(s)
}

// Shutdown implements sdktrace.SpanProcessor.
func (q *queue) Shutdown(ctx context.Context) error { return q.batches.Shutdown(ctx) }

// ForceFlush implements sdktrace.SpanProcessor.
func (q *queue) ForceFlush(ctx context.Context) error { return q.batches.ForceFlush(ctx) }

// exports is the exporter of a queue. Its errors end here: the SDK would print them.
type exports struct{ *queue }

// ExportSpans implements sdktrace.SpanExporter.
func (e exports) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.life, cancel)()
	err := e.exporter.ExportSpans(ctx, spans)
	n := len(spans)
	e.waiting.Add(int64(-n))
	if err != nil {
		e.dropped.Add(float64(n))
		if !e.failing {
			e.logger.Warn("the collector of --otlp-endpoint takes no spans", zap.Error(err))
		}
	} else {
		e.exported.Add(float64(n))
		if e.failing {
			e.logger.Info("the collector of --otlp-endpoint takes spans again")
		}
	}
	e.failing = err != nil
	return nil
}

// Shutdown implements sdktrace.SpanExporter.
func (e exports) Shutdown(ctx context.Context) error {
	_ = e.exporter.Shutdown(ctx)
	e.closeIdle()
	return nil
}

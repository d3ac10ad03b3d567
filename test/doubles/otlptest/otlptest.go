// Package otlptest is a collector of traces: a server of OTLP over HTTP that keeps what it gets.
package otlptest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/faroshq/kedge-hub/pkg/tracing"
)

// Collector keeps the spans that it gets.
type Collector struct {
	URL string

	mu    sync.Mutex
	raw   bytes.Buffer
	spans []*tracepb.Span
}

// New starts a collector.
func New(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// ServeHTTP implements http.Handler.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request collectorpb.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &request)
	}
	if err != nil || r.URL.Path != "/v1/traces" || r.Method != http.MethodPost {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw.Write(body)
	for _, resource := range request.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			c.spans = append(c.spans, scope.GetSpans()...)
		}
	}
}

// Tracer returns a tracer that sends to the collector. The test ends it with Close.
func (c *Collector) Tracer(t testing.TB, ratio float64) *tracing.Tracer {
	t.Helper()
	tracer, err := tracing.New(t.Context(), tracing.Options{Endpoint: c.URL, Ratio: ratio, Version: "test"}, prometheus.NewRegistry())
	require.NoError(t, err)
	t.Cleanup(tracer.Close)
	return tracer
}

// Spans returns the spans that have arrived, by name. Spans of the same name are in the order of their ends.
func (c *Collector) Spans() map[string][]*tracepb.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	named := map[string][]*tracepb.Span{}
	for _, s := range c.spans {
		named[s.GetName()] = append(named[s.GetName()], s)
	}
	return named
}

// Raw returns all that has arrived.
func (c *Collector) Raw() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.raw.String()
}

// Attributes returns the attributes of a span as texts.
func Attributes(s *tracepb.Span) map[string]string {
	all := map[string]string{}
	for _, a := range s.GetAttributes() {
		all[a.GetKey()] = a.GetValue().GetStringValue()
		if n := a.GetValue().GetIntValue(); n != 0 {
			all[a.GetKey()] = fmt.Sprint(n)
		}
	}
	return all
}

// Traceparent is the header that names a span.
func Traceparent(s *tracepb.Span) string {
	return fmt.Sprintf("00-%x-%x-01", s.GetTraceId(), s.GetSpanId())
}

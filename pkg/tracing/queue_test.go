package tracing_test

import (
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/tracing"
	"github.com/faroshq/kedge-hub/test/doubles/otlptest"
)

func newTracer(t *testing.T, o tracing.Options) (*tracing.Tracer, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewRegistry()
	o.Ratio = 1
	tracer, err := tracing.New(t.Context(), o, registry)
	require.NoError(t, err)
	t.Cleanup(tracer.Close)
	return tracer, registry
}

func counters(t *testing.T, registry *prometheus.Registry) (exported, dropped int) {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		n := int(family.GetMetric()[0].GetCounter().GetValue())
		switch family.GetName() {
		case "kedge_trace_spans_exported_total":
			exported = n
		case "kedge_trace_spans_dropped_total":
			dropped = n
		}
	}
	return exported, dropped
}

func reconcile(tracer *tracing.Tracer, times int) {
	for range times {
		_, end := tracer.Reconcile(context.Background(), "organization", cluster, org)
		end("done", false)
	}
}

func TestNew_withoutAnEndpointRegistersNothing(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	tracer, err := tracing.New(t.Context(), tracing.Options{Ratio: 1}, registry)
	require.NoError(t, err)
	require.Nil(t, tracer)
	families, err := registry.Gather()
	require.NoError(t, err)
	require.Empty(t, families)
}

func TestCollector_thatNeverAnswersSlowsNobody(t *testing.T) {
	t.Parallel()
	// It accepts connections, and reads nothing.
	dead, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = dead.Close() }()
	tracer, registry := newTracer(t, tracing.Options{Endpoint: "http://" + dead.Addr().String()})
	const spans = 10000
	began := time.Now()
	reconcile(tracer, spans)
	took := time.Since(began)
	require.Less(t, took, 5*time.Second, "a span takes no time of a request")
	began = time.Now()
	tracer.Close()
	require.Less(t, time.Since(began), 8*time.Second, "the end of the hub waits for two seconds")
	require.Eventually(t, func() bool {
		exported, dropped := counters(t, registry)
		return exported == 0 && dropped == spans
	}, 10*time.Second, 10*time.Millisecond, "each is counted")
}

func TestCollector_isVerifiedAndRedirectsNobody(t *testing.T) {
	t.Parallel()
	collector := otlptest.New(t)
	server := httptest.NewTLSServer(collector)
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	var redirected atomic.Int64
	away := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		redirected.Add(1)
		http.Redirect(w, r, collector.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(away.Close)
	for name, test := range map[string]struct {
		options  tracing.Options
		exported int
	}{
		"by the CA":          {tracing.Options{Endpoint: server.URL, Roots: roots}, 3},
		"by another CA":      {tracing.Options{Endpoint: server.URL}, 0},
		"one that redirects": {tracing.Options{Endpoint: away.URL}, 0},
		"in plain text":      {tracing.Options{Endpoint: collector.URL + "/"}, 3},
	} {
		tracer, registry := newTracer(t, test.options)
		reconcile(tracer, 3)
		tracer.Close()
		exported, dropped := counters(t, registry)
		require.Equal(t, test.exported, exported, name)
		require.Equal(t, 3-test.exported, dropped, name)
	}
	require.EqualValues(t, 1, redirected.Load())
	require.Len(t, collector.Spans()["reconcile organization"], 6)
}

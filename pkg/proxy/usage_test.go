package proxy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/proxy"
	"github.com/faroshq/kedge-hub/pkg/usage"
)

// What the gate refuses uses nothing: nobody adds to the usage of a Workspace of others.
func TestUsage_countsWhatKcpAnswers(t *testing.T) {
	t.Parallel()
	k := clocktesting.NewFakeClock(time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
	counter, err := usage.NewCounter(time.Hour, k, prometheus.NewRegistry())
	require.NoError(t, err)
	h := newHub(t, kcpURL, roundTripper(func(r *http.Request) (*http.Response, error) {
		if strings.Contains(r.URL.RawQuery, "watch") {
			k.Step(7 * time.Second)
		}
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("12345")), Request: r}, nil
	}), func(c *proxy.Config) { c.Usage = counter })
	for _, r := range []*http.Request{
		request(http.MethodGet, "/clusters/aaaa/api/v1/namespaces", "alice"),
		request(http.MethodGet, "/clusters/aaaa/api/v1/namespaces/default", "alice"),
		request(http.MethodDelete, "/clusters/aaaa/api/v1/namespaces/default", "alice"),
		request(http.MethodGet, "/clusters/aaaa/api/v1/namespaces?watch=true", "alice"),
		request(http.MethodGet, "/clusters/aaaa/api/v1/namespaces", "bob"),
		request(http.MethodGet, "/clusters/aaaa/api/v1/namespaces?watch=true", "bob"),
	} {
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	got, _, _ := counter.Next(10)
	w := usage.Workspace{Org: orgA, UUID: wsA}
	require.Equal(t, []usage.Of[usage.Requests]{{
		Starts: k.Now().Truncate(time.Hour), Workspace: w, Value: usage.Requests{Reads: 2, Writes: 1, Watches: 1, BytesOut: 20, Streamed: 7 * time.Second},
	}}, got.Requests)
	require.Len(t, got.Callers, 1)
	require.Equal(t, usage.Caller{ID: "alice"}, got.Callers[0].Value)
}

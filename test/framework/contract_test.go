package framework

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClient_failsACallThatIsNotDocumented(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "1")
		if strings.HasPrefix(r.URL.Path, "/healthz") {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = w.Write([]byte("ok"))
			return
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(server.Close)
	c := &Client{URL: server.URL, HTTP: &http.Client{Transport: documented(&http.Transport{})}}
	t.Cleanup(c.HTTP.CloseIdleConnections)
	for _, path := range []string{"/healthz", "/clusters/a/api", "/dex/token"} {
		_, err := c.Try(Call{Method: http.MethodGet, Path: path})
		require.NoError(t, err, path)
	}
	require.NoError(t, Undocumented())
	_, err := c.Try(Call{Method: http.MethodGet, Path: "/api/orgs"})
	require.ErrorContains(t, err, "openapi.yaml: GET /api/orgs: 418: the status is not documented")
	require.ErrorContains(t, Undocumented(), "418")
}

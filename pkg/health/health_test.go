package health

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

func TestHealthProbes_haveARequestID(t *testing.T) {
	t.Parallel()
	f := NewFront(NewChecks(), http.NotFoundHandler())
	answer := func(method, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody))
		return w
	}
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/version", "/api/orgs"} {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
			w := answer(method, path)
			require.Len(t, w.Header().Values("X-Request-Id"), 1, "%s %s", method, path)
			require.NotEmpty(t, w.Header().Get("X-Request-Id"), "%s %s", method, path)
		}
	}
	post := answer(http.MethodPost, "/livez")
	require.Equal(t, http.StatusMethodNotAllowed, post.Code)
	require.Equal(t, "GET, HEAD", post.Header().Get("Allow"))
}

func TestReadyz_aFullDiskIsADetailOnly(t *testing.T) {
	t.Parallel()
	h := NewChecks()
	var full error
	ask := func() (int, string) {
		w := httptest.NewRecorder()
		h.Details(w, httptest.NewRequest(http.MethodGet, "/readyz", http.NoBody))
		return w.Code, w.Body.String()
	}
	code, body := ask()
	require.Equal(t, http.StatusServiceUnavailable, code, "the other checks fail here")
	require.NotContains(t, body, "disk", "the disk of an external kcp is not checked")
	h.AddDetail("disk", func() error { return full })
	_, body = ask()
	require.Contains(t, body, "[+]disk ok\n")
	full = errors.New("it is full")
	_, body = ask()
	require.Contains(t, body, "[-]disk not ready: it is full")
	for _, c := range h.checks() {
		require.Equal(t, c.name == "disk", c.lenient, c.name)
	}
	require.Equal(t, 1, strings.Count(body, "disk"))
}

func TestReadyz_namesADetailThatFails(t *testing.T) {
	t.Parallel()
	h := NewChecks()
	err := errors.Join(errors.New("the issuer is down"), errors.New("kcp names people otherwise"))
	h.AddDetail("oidc", func() error { return err })
	details := func() string {
		w := httptest.NewRecorder()
		h.Details(w, httptest.NewRequest(http.MethodGet, "/readyz?verbose", http.NoBody))
		return w.Body.String()
	}
	require.Contains(t, details(), "[-]oidc not ready: the issuer is down; kcp names people otherwise\n")
	err = nil
	require.Contains(t, details(), "[+]oidc ok\n")
	for _, c := range h.checks() {
		require.Equal(t, c.name == "oidc", c.lenient, c.name)
	}
}

func TestChecks_areMetrics(t *testing.T) {
	t.Parallel()
	h := NewChecks()
	h.AddDetail("oidc", func() error { return errors.New("the issuer is down") })
	h.AddDetail("disk", func() error { return nil })
	h.Assembled(func() bool { return true })
	r := prometheus.NewRegistry()
	require.NoError(t, h.Register(r))
	require.NoError(t, testutil.GatherAndCompare(r, strings.NewReader(`
# HELP kedge_check_ok 1 if a check of /readyz?verbose succeeds, else 0, by check.
# TYPE kedge_check_ok gauge
kedge_check_ok{check="controllers"} 1
kedge_check_ok{check="disk"} 1
kedge_check_ok{check="kcp"} 0
kedge_check_ok{check="oidc"} 0
kedge_check_ok{check="views"} 1
# HELP kedge_ready 1 if /readyz succeeds, else 0.
# TYPE kedge_ready gauge
kedge_ready 0
`)))
}

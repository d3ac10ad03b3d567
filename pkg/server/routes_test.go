package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	hubconfig "github.com/faroshq/kedge-hub/config"
	"github.com/faroshq/kedge-hub/pkg/api/login"
	"github.com/faroshq/kedge-hub/pkg/api/openapi"
	"github.com/faroshq/kedge-hub/pkg/health"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/portal"
)

func answer(t *testing.T, h http.Handler, method, target string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, target, http.NoBody))
	return w
}

func TestReadyz_hasDetailsOnTheMetricsListenerOnly(t *testing.T) {
	t.Parallel()
	checks := health.NewChecks()
	f, operators := health.NewFront(checks, http.NotFoundHandler()), (&hub{checks: checks}).operators()
	for _, target := range []string{"/readyz", "/readyz?verbose", "/readyz?verbose=true"} {
		public := answer(t, f, http.MethodGet, target)
		require.Equal(t, http.StatusServiceUnavailable, public.Code)
		require.Equal(t, "not ready", public.Body.String(), target)
		details := answer(t, operators, http.MethodGet, target)
		require.Equal(t, http.StatusServiceUnavailable, details.Code)
		require.Contains(t, details.Body.String(), "[-]kcp not ready: it has not been asked yet")
		require.NotEmpty(t, details.Header().Get("X-Request-Id"))
	}
}

// A page that is open tells people itself that kcp is unavailable.
func TestRoutes_refuseAllButPagesWithoutKcp(t *testing.T) {
	t.Parallel()
	r := unguarded()
	r.present = func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	}
	var err error
	r.portal, err = portal.New(portal.Options{})
	require.NoError(t, err)
	r.login = &login.Handler{}
	app := r.router()
	for path, code := range map[string]int{
		"/ui": http.StatusSeeOther, "/ui/": http.StatusOK, "/ui/me": http.StatusOK, "/ui/downloads/": http.StatusOK, "/ui/ca.crt": http.StatusNotFound,
		"/auth/authorize": http.StatusNotFound, "/.well-known/oauth-authorization-server": http.StatusNotFound,
		"/uix": http.StatusServiceUnavailable, "/auth": http.StatusServiceUnavailable, "/authx/token": http.StatusServiceUnavailable,
		"/api/users/me": http.StatusServiceUnavailable, "/api/nowhere": http.StatusServiceUnavailable, "/apis": http.StatusServiceUnavailable,
		"/clusters/c-w1/api": http.StatusServiceUnavailable, "/nowhere": http.StatusServiceUnavailable,
	} {
		require.Equal(t, code, answer(t, app, http.MethodGet, path).Code, path)
	}
	require.Equal(t, http.StatusServiceUnavailable, answer(t, app, http.MethodPost, "/ui/").Code)
	require.NoError(t, chi.Walk(app, func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if strings.HasPrefix(pattern, "/api/") || strings.HasPrefix(pattern, "/clusters/") {
			require.Equal(t, http.StatusServiceUnavailable, answer(t, app, method, pattern).Code, "%s %s", method, pattern)
		}
		return nil
	}))
}

// TestHEAD_answersAsGETWithoutABody goes over a connection: net/http takes the body out.
func TestHEAD_answersAsGETWithoutABody(t *testing.T) {
	t.Parallel()
	r := unguarded()
	r.login = &login.Handler{}
	r.authenticate = func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_ = httpapi.Write(w, http.StatusOK, map[string]string{"name": "alice"})
		})
	}
	r.recognize = r.authenticate
	app := r.router()
	document, err := openapi.New(hubconfig.OpenAPI)
	require.NoError(t, err)
	f := health.NewFront(health.NewChecks(), document)
	f.Open(app)
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	ask := func(method, path string) (int, http.Header, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, http.NoBody)
		require.NoError(t, err)
		response, err := server.Client().Do(r)
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		raw, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		response.Header.Del("X-Request-Id")
		response.Header.Del("Date")
		return response.StatusCode, response.Header, string(raw)
	}
	paths := []string{"/healthz", "/livez", "/readyz", "/version", "/openapi.json", "/nowhere", "/apis"}
	require.NoError(t, chi.Walk(app, func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if method == http.MethodGet {
			paths = append(paths, pattern)
		}
		return nil
	}))
	for _, path := range paths {
		code, header, body := ask(http.MethodGet, path)
		require.NotEmpty(t, body, path)
		headCode, headHeader, headBody := ask(http.MethodHead, path)
		require.Equal(t, code, headCode, path)
		require.Equal(t, header, headHeader, path)
		require.Empty(t, headBody, path)
	}
	code, header, _ := ask(http.MethodHead, "/version/")
	require.Equal(t, http.StatusNotFound, code)
	require.NotEmpty(t, header.Get("Content-Length"))
}

func TestRoutes_haveHEADWhereverGETIs(t *testing.T) {
	t.Parallel()
	all := map[Route]int{}
	for _, r := range Routes() {
		all[r]++
	}
	for r, n := range all {
		require.Equal(t, 1, n, r)
		if r.Method == http.MethodGet {
			require.Contains(t, all, Route{http.MethodHead, r.Pattern})
		}
	}
	require.NotContains(t, all, Route{http.MethodHead, "/api/credentials"})
}

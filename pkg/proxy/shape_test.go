package proxy_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/proxy"
)

const kcpURL = "https://kcp.test:6443"

func TestShape_serialisesWhatIsForwarded(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, target, forwarded string }{
		{"by ID", "/clusters/aaaa/api/v1/namespaces", "/clusters/aaaa/api/v1/namespaces"},
		{"by path, which becomes the ID", "/clusters/" + pathA + "/api/v1/namespaces", "/clusters/aaaa/api/v1/namespaces"},
		{"discovery root", "/clusters/aaaa", "/clusters/aaaa/"},
		{"discovery root with its slash", "/clusters/aaaa/", "/clusters/aaaa/"},
		{"core versions", "/clusters/aaaa/api", "/clusters/aaaa/api"},
		{"groups, as generated clients spell them", "/clusters/aaaa/apis/", "/clusters/aaaa/apis/"},
		{"openapi", "/clusters/aaaa/openapi/v3/apis/apps/v1?hash=A1", "/clusters/aaaa/openapi/v3/apis/apps/v1?hash=A1"},
		{"version", "/clusters/aaaa/version", "/clusters/aaaa/version"},
		{"health", "/clusters/aaaa/readyz?verbose", "/clusters/aaaa/readyz?verbose"},
		{"one health check", "/clusters/aaaa/livez/ping", "/clusters/aaaa/livez/ping"},
		{"RBAC name with colons", "/clusters/aaaa/apis/rbac.authorization.k8s.io/v1/clusterroles/kedge:workspace:admin", "/clusters/aaaa/apis/rbac.authorization.k8s.io/v1/clusterroles/kedge:workspace:admin"},
		{"RBAC name with colons, as Python's client sends it", "/clusters/aaaa/apis/rbac.authorization.k8s.io/v1/clusterroles/kedge%3Aworkspace%3aadmin", "/clusters/aaaa/apis/rbac.authorization.k8s.io/v1/clusterroles/kedge:workspace:admin"},
		{"RBAC name with a question mark", "/clusters/aaaa/apis/rbac.authorization.k8s.io/v1/clusterroles/a%3Fwatch=1", "/clusters/aaaa/apis/rbac.authorization.k8s.io/v1/clusterroles/a%3Fwatch=1"},
		{"RBAC name with a hash", "/clusters/aaaa/apis/rbac.authorization.k8s.io/v1/clusterroles/a%23b", "/clusters/aaaa/apis/rbac.authorization.k8s.io/v1/clusterroles/a%23b"},
		{"RBAC name with a semicolon and an at sign", "/clusters/aaaa/apis/rbac.authorization.k8s.io/v1/clusterroles/a%3Bb%40c", "/clusters/aaaa/apis/rbac.authorization.k8s.io/v1/clusterroles/a;b@c"},
		{"RBAC name with a space", "/clusters/aaaa/apis/rbac.authorization.k8s.io/v1/clusterroles/my%20role", "/clusters/aaaa/apis/rbac.authorization.k8s.io/v1/clusterroles/my%20role"},
		{"RBAC name beyond ASCII", "/clusters/aaaa/apis/rbac.authorization.k8s.io/v1/clusterroles/%C3%A9t%C3%A9", "/clusters/aaaa/apis/rbac.authorization.k8s.io/v1/clusterroles/%C3%A9t%C3%A9"},
		{"an escape that needs none", "/clusters/aaaa/api/v1/namespaces/%64efault", "/clusters/aaaa/api/v1/namespaces/default"},
		{"an escape in lower case", "/clusters/aaaa/api/v1/namespaces/a%7cb", "/clusters/aaaa/api/v1/namespaces/a%7Cb"},
		{"another cluster's path below is a name like any", "/clusters/aaaa/api/v1/clusters/bbbb", "/clusters/aaaa/api/v1/clusters/bbbb"},
		{"the query as it came", "/clusters/aaaa/api/v1/pods?labelSelector=a%3Db;c&x=%zz&&=", "/clusters/aaaa/api/v1/pods?labelSelector=a%3Db;c&x=%zz&&="},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			rec := &recorder{}
			w := newHub(t, kcpURL, rec).do(request(http.MethodGet, tc.target, "alice"))
			require.Equal(t, http.StatusOK, w.Code, w.Body)
			require.Len(t, rec.requests, 1)
			require.Equal(t, tc.forwarded, rec.requests[0].URL.RequestURI())
			require.Equal(t, "kcp.test:6443", rec.requests[0].URL.Host)
			require.Equal(t, "kcp.test:6443", rec.requests[0].Host)
		})
	}
}

func TestForward_keepsTheBaseOfAnExternalKCP(t *testing.T) {
	t.Parallel()
	for _, base := range []string{kcpURL + "/base", kcpURL + "/base/"} {
		rec := &recorder{}
		newHub(t, base, rec).do(request(http.MethodGet, "/clusters/aaaa/api", "alice"))
		require.Equal(t, "/base/clusters/aaaa/api", rec.requests[0].URL.RequestURI())
	}
}

// TestShape_refusesAmbiguousPaths has its positive controls in
// TestShape_serialisesWhatIsForwarded.
func TestShape_refusesAmbiguousPaths(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]string{
		"wildcard":                          "/clusters/*/api/v1/namespaces",
		"wildcard, encoded":                 "/clusters/%2A/api/v1/namespaces",
		"system cluster":                    "/clusters/system:admin/api",
		"no cluster":                        "/clusters//api",
		"upper case":                        "/clusters/AAAA/api",
		"encoded letter in the cluster":     "/clusters/%61aaa/api",
		"encoded colon in the path":         "/clusters/root%3Akedge/api",
		"encoded slash after the cluster":   "/clusters/aaaa%2Fapi",
		"encoded slash beside an odd byte":  "/clusters/aaaa/api/v1%2Fnamespaces/a|b",
		"encoded slash in lower case":       "/clusters/aaaa/api/v1%2fnamespaces",
		"dot cluster":                       "/clusters/./api",
		"dot-dot cluster":                   "/clusters/../api",
		"dot-dot cluster, encoded":          "/clusters/%2e%2e/api",
		"too long an ID":                    "/clusters/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/api",
		"below a Workspace":                 "/clusters/" + pathA + ":deeper/api",
		"below a Workspace, a UUID":         "/clusters/" + pathA + ":" + wsB + "/api",
		"Workspace that is no UUID":         "/clusters/root:kedge:orgs:" + orgA + ":default/api",
		"UUID in upper case":                "/clusters/root:kedge:orgs:" + orgA + ":AAAAAAAA-AAAA-4AAA-8AAA-AAAAAAAAAAAA/api",
		"the hub's root":                    "/clusters/root:kedge/api",
		"users":                             "/clusters/root:kedge:users/api",
		"providers":                         "/clusters/root:kedge:providers/api",
		"orgs":                              "/clusters/root:kedge:orgs/api",
		"an Org":                            "/clusters/root:kedge:orgs:" + orgA + "/api",
		"another hub's Workspace":           "/clusters/root:elsewhere:orgs:" + orgA + ":" + wsA + "/api",
		"empty label":                       "/clusters/root::orgs/api",
		"colon at the end":                  "/clusters/root:/api",
		"dot-dot to another cluster":        "/clusters/aaaa/api/../../bbbb/api",
		"dot-dot, encoded":                  "/clusters/aaaa/api/%2e%2e/%2e%2e/bbbb/api",
		"dot-dot, half encoded":             "/clusters/aaaa/api/.%2e/metrics",
		"dot-dot, encoded twice":            "/clusters/aaaa/api/%252e%252e/metrics",
		"dot-dot at the end":                "/clusters/aaaa/api/..",
		"dot":                               "/clusters/aaaa/./api",
		"empty segment":                     "/clusters/aaaa//api",
		"empty segment inside":              "/clusters/aaaa/api//v1",
		"two slashes at the end":            "/clusters/aaaa/api//",
		"backslash":                         "/clusters/aaaa/api/..\\..\\bbbb",
		"backslash, encoded":                "/clusters/aaaa/api/%5C..%5Cbbbb",
		"encoded percent":                   "/clusters/aaaa/api/v1/namespaces/a%25b",
		"encoded percent before a slash":    "/clusters/aaaa/api/v1/namespaces/a%252Fb",
		"encoded slash in a name":           "/clusters/aaaa/apis/rbac.authorization.k8s.io/v1/clusterroles/kedge%3Aworkspace%2Fadmin",
		"dot-dot beside a colon, encoded":   "/clusters/aaaa/api/v1/%2e%2e/a%3Ab",
		"backslash beside a colon, encoded": "/clusters/aaaa/api/v1/%5c..%5ca%3Ab",
		"encoded tab":                       "/clusters/aaaa/api/v1/namespaces/a%09b",
		"no resource to watch":              "/clusters/aaaa/api/v1/watch",
		"no resource to proxy":              "/clusters/aaaa/apis/apps/v1/proxy/",
		"encoded dot":                       "/clusters/aaaa/api/v1/namespaces/a%2Eb",
		"hash":                              "/clusters/aaaa/api/v1/namespaces/a#b",
		"NUL":                               "/clusters/aaaa/api/v1/namespaces/a%00b",
		"line break":                        "/clusters/aaaa/api/v1%0d%0aHost:%20x",
		"escape character":                  "/clusters/aaaa/api/v1/%1b[2J",
		"direction mark":                    "/clusters/aaaa/api/v1/%E2%80%AE",
		"invalid UTF-8":                     "/clusters/aaaa/api/v1/%ff",
		"overlong slash":                    "/clusters/aaaa/api/%c0%af",
		"encoded first segment":             "/clusters/aaaa/%61pi/v1",
		"first segment in upper case":       "/clusters/aaaa/API/v1",
		"first segment with something more": "/clusters/aaaa/apix/v1",
		"debug":                             "/clusters/aaaa/debug/pprof/heap",
		"metrics":                           "/clusters/aaaa/metrics",
		"statusz":                           "/clusters/aaaa/statusz",
		"flagz":                             "/clusters/aaaa/flagz",
		"configz":                           "/clusters/aaaa/configz",
		"logs":                              "/clusters/aaaa/logs/kcp.log",
		"services":                          "/clusters/aaaa/services/apiexport/root/x/clusters/*/api",
		"clusters below a cluster":          "/clusters/aaaa/clusters/bbbb/api",
		"migration dump":                    "/clusters/aaaa/migration",
		"two slashes first":                 "//clusters/aaaa/api",
		"another prefix":                    "/Clusters/aaaa/api",
		"absolute form":                     "https://kcp.test:6443/clusters/aaaa/api",
		"absolute form with a name":         "https://alice@hub/clusters/aaaa/api",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := &recorder{}
			h := newHub(t, kcpURL, rec)
			for _, user := range []string{"alice", ""} {
				w := h.do(request(http.MethodGet, target, user))
				require.Equal(t, http.StatusNotFound, w.Code, w.Body)
				statusOf(t, w.Body.Bytes())
			}
			require.Empty(t, rec.requests)
		})
	}
}

func TestShape_refusesAPathThatAMiddlewareChanged(t *testing.T) {
	t.Parallel()
	rec := &recorder{}
	h := newHub(t, kcpURL, rec)
	r := request(http.MethodGet, "/clusters/aaaa/api/v1/namespaces/a%7cb", "alice")
	r.URL.Path = "/clusters/bbbb/api/v1/namespaces/a|b"
	require.Equal(t, http.StatusNotFound, h.do(r).Code)
	require.Empty(t, rec.requests)
}

func TestShape_refusesAQueryThatSplitsTheRequestLine(t *testing.T) {
	t.Parallel()
	for _, query := range []string{"a b", "a\r\nHost:x", "a\x00", "a#b", "a\x7f", "é"} {
		rec := &recorder{}
		r := request(http.MethodGet, "/clusters/aaaa/api", "alice")
		r.URL.RawQuery = query
		w := newHub(t, kcpURL, rec).do(r)
		require.Equal(t, http.StatusBadRequest, w.Code, "%q", query)
		require.Empty(t, rec.requests)
	}
}

func TestShape_servesMethodsOfTheKubernetesAPIOnly(t *testing.T) {
	t.Parallel()
	for method, code := range map[string]int{
		"GET": 200, "HEAD": 200, "POST": 200, "PUT": 200, "PATCH": 200, "DELETE": 200,
		"TRACE": 405, "CONNECT": 405, "OPTIONS": 405, "PROPFIND": 405, "get": 405,
	} {
		rec := &recorder{}
		r := request(http.MethodGet, "/clusters/aaaa/api", "alice")
		r.Method = method
		w := newHub(t, kcpURL, rec).do(r)
		require.Equal(t, code, w.Code, method)
		if code == http.StatusMethodNotAllowed {
			require.NotEmpty(t, w.Header().Get("Allow"), method)
			require.Empty(t, rec.requests, method)
		}
	}
}

func TestNotHere_saysWhichURLToUse(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	proxy.NotHere(w, httptest.NewRequest(http.MethodGet, "/apis", nil))
	require.Equal(t, http.StatusNotFound, w.Code)
	require.Contains(t, statusOf(t, w.Body.Bytes()).Message, "/clusters/")
}

func TestProxy_panicsWithoutShape(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(kcpURL)
	require.NoError(t, err)
	p, err := proxy.New(proxy.Config{Upstream: u, Draining: t.Context(), Metrics: prometheus.NewRegistry()})
	require.NoError(t, err)
	require.Panics(t, func() { p.ServeHTTP(httptest.NewRecorder(), request(http.MethodGet, "/clusters/aaaa/api", "alice")) })
}

package kcp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/pkg/kcp"
)

const servedAs = `{"kind":"APIResourceList","resources":[{"name":"%s","verbs":["create","list","get"]},{"name":"%[1]s/status","verbs":["get","patch"]},
	{"name":"reviews","verbs":["create"]},{"name":"readonly","verbs":["list"]}]}`

func skipNone(string, []byte) bool { return false }

func TestUsage_countsAllPagesOnce(t *testing.T) {
	t.Parallel()
	var fails atomic.Int64
	pages := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, "/clusters/c")
		switch {
		case path == "/api/v1":
			fmt.Fprintf(w, servedAs, "configmaps")
		case path == "/apis":
			fmt.Fprint(w, `{"kind":"APIGroupList","groups":[{"name":"apis.kcp.io","versions":[{"groupVersion":"apis.kcp.io/v1alpha1","version":"v1alpha1"},`+
				`{"groupVersion":"apis.kcp.io/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apis.kcp.io/v1","version":"v1"}}]}`)
		case path == "/apis/apis.kcp.io/v1", path == "/apis/apis.kcp.io/v1alpha1":
			fmt.Fprintf(w, servedAs, "apibindings")
		case path == "/api/v1/configmaps" && r.URL.Query().Get("continue") == "":
			pages++
			fmt.Fprint(w, `{"kind":"ConfigMapList","items":[{"a":1},{"b":"x y"}],"metadata":{"continue":"more","x":[1]}}`)
		case path == "/api/v1/configmaps":
			pages++
			if code := fails.Load(); code != 0 {
				w.WriteHeader(int(code))
				return
			}
			fmt.Fprint(w, `{"metadata":{},"items":[{"c":3}]}`)
		case path == "/apis/apis.kcp.io/v1/apibindings":
			fmt.Fprint(w, `{"metadata":{},"items":null}`)
		default:
			t.Errorf("%s is not asked for", r.URL)
		}
	}))
	defer server.Close()
	clients, err := kcp.NewClients(&rest.Config{Host: server.URL}, prometheus.NewRegistry())
	require.NoError(t, err)
	u, err := clients.Usage(t.Context(), "c", skipNone)
	require.NoError(t, err)
	bindings := kcp.Stored{}
	require.Equal(t, kcp.Usage{ByResource: map[string]kcp.Stored{
		"/configmaps": {Objects: 3, Bytes: int64(len(`{"a":1}{"b":"x y"}{"c":3}`))}, "apis.kcp.io/apibindings": bindings,
	}}, u)
	require.Equal(t, 2, pages)
	u, err = clients.Usage(t.Context(), "c", func(resource string, object []byte) bool {
		return resource == "/configmaps" && strings.Contains(string(object), "x y")
	})
	require.NoError(t, err)
	require.Equal(t, kcp.Stored{Objects: 2, Bytes: 14}, u.ByResource["/configmaps"])
	for code, unread := range map[int64][]string{
		http.StatusNotFound: nil, http.StatusInternalServerError: {"/configmaps"}, http.StatusForbidden: {"/configmaps"}, http.StatusServiceUnavailable: {"/configmaps"},
	} {
		fails.Store(code)
		u, err := clients.Usage(t.Context(), "c", skipNone)
		require.NoError(t, err)
		require.Equal(t, unread, u.Unread, "%d: what cannot be read does not count as nothing", code)
		require.Equal(t, unread == nil, slices.Contains(u.Bound, "/configmaps"), "what kcp does not find exists, or was removed a moment ago")
		require.Equal(t, bindings, u.ByResource["apis.kcp.io/apibindings"])
		require.NotContains(t, u.ByResource, "/configmaps")
	}
	fails.Store(http.StatusTooManyRequests)
	_, err = clients.Usage(t.Context(), "c", skipNone)
	require.ErrorContains(t, err, "429", "the next measurement may succeed")
}

// A tenant who stores objects in a version that kcp cannot serve hides them by no other version.
func TestUsage_readsAnotherVersion(t *testing.T) {
	t.Parallel()
	var discovered atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := strings.TrimPrefix(r.URL.Path, "/clusters/c"); path {
		case "/api/v1":
			fmt.Fprint(w, `{"resources":[]}`)
		case "/apis":
			fmt.Fprint(w, `{"groups":[{"name":"g","versions":[{"groupVersion":"g/v1"},{"groupVersion":"g/v2"}],"preferredVersion":{"groupVersion":"g/v2"}},`+
				`{"name":"dead","versions":[{"groupVersion":"dead/v1"}],"preferredVersion":{"groupVersion":"dead/v1"}}]}`)
		case "/apis/g/v1", "/apis/g/v2":
			fmt.Fprintf(w, servedAs, "widgets")
		case "/apis/g/v1/widgets":
			fmt.Fprint(w, `{"items":[{}]}`)
		case "/apis/dead/v1":
			if discovered.Load() {
				fmt.Fprint(w, `{"resources":[]}`)
				return
			}
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	clients, err := kcp.NewClients(&rest.Config{Host: server.URL}, prometheus.NewRegistry())
	require.NoError(t, err)
	u, err := clients.Usage(t.Context(), "c", skipNone)
	require.NoError(t, err)
	require.Equal(t, kcp.Usage{ByResource: map[string]kcp.Stored{"g/widgets": {Objects: 1, Bytes: 2}}, Unread: []string{"dead/"}}, u)
	discovered.Store(true)
	u, err = clients.Usage(t.Context(), "c", skipNone)
	require.NoError(t, err)
	require.Empty(t, u.Unread)
}

// A definition that serves no version, or whose objects have finalizers when it is deleted, and a provider that takes its
// API away, hide objects from discovery.
func TestUsage_namesWhatIsHiddenFromDiscovery(t *testing.T) {
	t.Parallel()
	var fails atomic.Bool
	const (
		definition = `{"spec":{"group":"g","names":{"plural":"%s"}},"status":{"conditions":[{"type":"Established","status":"%s"}]}}`
		binding    = `{"items":[{"status":{"boundResources":[{"group":"p","resource":"dead"}]}},{}]}`
	)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := strings.TrimPrefix(r.URL.Path, "/clusters/c"); path {
		case "/api/v1":
			fmt.Fprint(w, `{"resources":[]}`)
		case "/apis":
			fmt.Fprint(w, `{"groups":[`)
			for _, group := range []string{"apiextensions.k8s.io", "apis.kcp.io"} {
				fmt.Fprintf(w, `{"name":"%s","versions":[{"groupVersion":"%[1]s/v1"}],"preferredVersion":{"groupVersion":"%[1]s/v1"}},`, group)
			}
			fmt.Fprint(w, `{"name":"g","versions":[{"groupVersion":"g/v1"}],"preferredVersion":{"groupVersion":"g/v1"}}]}`)
		case "/apis/g/v1":
			fmt.Fprint(w, `{"resources":[{"name":"ending","verbs":["delete","deletecollection","get","list","watch"]}]}`)
		case "/apis/g/v1/ending":
			fmt.Fprint(w, `{"items":[{}]}`)
		case "/apis/apiextensions.k8s.io/v1":
			fmt.Fprintf(w, servedAs, "customresourcedefinitions")
		case "/apis/apis.kcp.io/v1":
			fmt.Fprintf(w, servedAs, "apibindings")
		case "/apis/apiextensions.k8s.io/v1/customresourcedefinitions":
			if fails.Load() {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			fmt.Fprintf(w, `{"items":[`+definition+`,`+definition+`,`+definition+`]}`, "unserved", "True", "new", "False", "ending", "True")
		case "/apis/apis.kcp.io/v1/apibindings":
			fmt.Fprint(w, binding)
		default:
			t.Errorf("%s is not asked for", r.URL)
		}
	}))
	defer server.Close()
	clients, err := kcp.NewClients(&rest.Config{Host: server.URL}, prometheus.NewRegistry())
	require.NoError(t, err)
	u, err := clients.Usage(t.Context(), "c", skipNone)
	require.NoError(t, err)
	require.Equal(t, []string{"g/ending", "g/unserved"}, u.Owned)
	require.Equal(t, []string{"p/dead"}, u.Bound)
	require.Empty(t, u.Unread)
	require.Equal(t, kcp.Stored{Objects: 1, Bytes: 2}, u.ByResource["g/ending"])
	require.NotContains(t, u.ByResource, "g/unserved")
	fails.Store(true)
	_, err = clients.Usage(t.Context(), "c", skipNone)
	require.ErrorContains(t, err, "customresourcedefinitions", "nobody knows what else there is")
}

package kcp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
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
	u, err := clients.Usage(t.Context(), "c")
	require.NoError(t, err)
	require.Equal(t, kcp.Usage{Objects: 3, Bytes: int64(len(`{"a":1}{"b":"x y"}{"c":3}`)), ByResource: map[string]int64{"/configmaps": 3, "apis.kcp.io/apibindings": 0}}, u)
	require.Equal(t, 2, pages)
	for code, ok := range map[int64]bool{http.StatusNotFound: true, http.StatusInternalServerError: false, http.StatusForbidden: false} {
		fails.Store(code)
		_, err := clients.Usage(t.Context(), "c")
		require.Equal(t, ok, err == nil, "%d: what cannot be read does not count as nothing", code)
	}
}

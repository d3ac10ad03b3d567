package proxy_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/proxy"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestO10_WhatIsTheHubsIsRefusedAndSaysWhy(t *testing.T) {
	t.Parallel()
	rec := &recorder{}
	h := newHub(t, kcpURL, rec)
	for _, cluster := range []string{"root", "orga", "users"} {
		w := h.do(request(http.MethodGet, "/clusters/"+cluster+"/api/v1/namespaces", "alice"))
		require.Equal(t, http.StatusForbidden, w.Code, cluster)
		status := statusOf(t, w.Body.Bytes())
		require.EqualValues(t, "Forbidden", status.Reason)
		require.EqualValues(t, tenancy.CauseOrgWorkspace, status.Details.Causes[0].Type)
		require.Contains(t, status.Message, "/api/orgs")
	}
	require.Empty(t, rec.requests)
	// Her own Workspace, both ways.
	for _, cluster := range []string{"aaaa", pathA} {
		require.Equal(t, http.StatusOK, h.do(request(http.MethodGet, "/clusters/"+cluster+"/api/v1/namespaces", "alice")).Code)
	}
	require.Len(t, rec.requests, 2)
}

func TestGate_foreignAndUnknownGetTheSameBytes(t *testing.T) {
	t.Parallel()
	rec := &recorder{}
	h := newHub(t, kcpURL, rec)
	want := h.do(request(http.MethodGet, "/clusters/nosuchcluster/api", "alice"))
	require.Equal(t, http.StatusForbidden, want.Code)
	for _, cluster := range []string{"bbbb", pathB, "orgb", "root:kedge:orgs:" + orgA + ":" + wsB} {
		w := h.do(request(http.MethodGet, "/clusters/"+cluster+"/api", "alice"))
		require.Equal(t, want.Code, w.Code, cluster)
		require.Equal(t, want.Body.Bytes(), w.Body.Bytes(), cluster)
		require.Equal(t, want.Header(), w.Header(), cluster)
	}
	require.Empty(t, rec.requests)
	require.Equal(t, http.StatusOK, h.do(request(http.MethodGet, "/clusters/bbbb/api", "bob")).Code)
}

func TestShape_comesBeforeAuthentication(t *testing.T) {
	t.Parallel()
	rec := &recorder{}
	h := newHub(t, kcpURL, rec)
	require.Equal(t, http.StatusNotFound, h.do(request(http.MethodGet, "/clusters/aaaa/metrics", "")).Code)
	for _, cluster := range []string{"aaaa", "nosuchcluster", "root", "users"} {
		w := h.do(request(http.MethodGet, "/clusters/"+cluster+"/api", ""))
		require.Equal(t, http.StatusUnauthorized, w.Code, cluster)
		require.NotEmpty(t, w.Header().Get("WWW-Authenticate"))
	}
	require.Empty(t, rec.requests)
}

// TestGate_tellsKubectlWhy is about what kubectl shows: of a refused discovery
// nothing but plain text.
func TestGate_tellsKubectlWhy(t *testing.T) {
	t.Parallel()
	const discovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
	h := newHub(t, kcpURL, roundTripper(func(*http.Request) (*http.Response, error) { return nil, errTest }))
	for cluster, code := range map[string]int{"root": 403, "bbbb": 403, "root:kedge": 404} {
		w := h.do(request(http.MethodGet, "/clusters/"+cluster+"/api", "alice", "Accept", discovery))
		require.Equal(t, code, w.Code)
		require.Equal(t, "text/plain; charset=utf-8", w.Header().Get("Content-Type"))
		plain := w.Body.String()
		w = h.do(request(http.MethodGet, "/clusters/"+cluster+"/api", "alice", "Accept", "application/json"))
		require.Equal(t, code, w.Code)
		require.Equal(t, plain, statusOf(t, w.Body.Bytes()).Message)
	}
	// What a retry may mend stays a Status, with its Retry-After.
	w := h.do(request(http.MethodGet, "/clusters/aaaa/api", "alice", "Accept", discovery))
	require.Equal(t, http.StatusBadGateway, w.Code)
	require.NotEmpty(t, w.Header().Get("Retry-After"))
	statusOf(t, w.Body.Bytes())
}

// The front proxy of kcp answers 502 without a body for a shard that is down. A 502 of an API has one.
func TestProxy_aShardWithoutAConnectionIsUnavailable(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{"": http.StatusServiceUnavailable, "of an API": http.StatusBadGateway} {
		h := newHub(t, kcpURL, roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{
				StatusCode: http.StatusBadGateway, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
				Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
			}, nil
		}))
		w := h.do(request(http.MethodGet, "/clusters/aaaa/api", "alice"))
		require.Equal(t, want, w.Code)
		if body == "" {
			require.NotEmpty(t, w.Header().Get("Retry-After"))
			require.EqualValues(t, want, statusOf(t, w.Body.Bytes()).Code)
		}
	}
}

func TestNew_needsTLS(t *testing.T) {
	t.Parallel()
	for upstream, ok := range map[string]bool{"https://kcp": true, "http://kcp": false, "https:///x": false, "kcp": false} {
		u, err := url.Parse(upstream)
		require.NoError(t, err)
		_, err = proxy.New(proxy.Config{Upstream: u, Draining: t.Context(), Metrics: prometheus.NewRegistry()})
		require.Equal(t, ok, err == nil, upstream)
	}
}

// Until kcp enforces the admission policy nothing else refuses what it would.
func TestGuarded_writesWaitForTheAdmissionPolicy(t *testing.T) {
	t.Parallel()
	rec := &recorder{}
	h := newHub(t, kcpURL, rec)
	h.rights.set("alice", false, inWorkspace(v1alpha1.RoleAdmin))
	guarded := []string{
		"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings/a",
		"/apis/rbac.authorization.k8s.io/v1/clusterroles/a", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
		"/api/v1/namespaces/default/secrets", "/api/v1/namespaces/default/serviceaccounts/a", "/api/v1/namespaces/default", "/api/v1/namespaces/default/finalize",
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/a.b.c", "/apis/apis.kcp.io/v1alpha1/apiresourceschemas",
		"/apis/apis.kcp.io/v1alpha1/apibindings/a", "/apis/apis.kcp.io/v1alpha2/apibindings",
	}
	h.rights.setEnforced(false)
	for _, path := range guarded {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			w := h.do(request(method, "/clusters/aaaa"+path, "alice"))
			require.Equal(t, http.StatusServiceUnavailable, w.Code, method, path)
			require.Equal(t, "1", w.Header().Get("Retry-After"))
			require.Contains(t, statusOf(t, w.Body.Bytes()).Message, "admission policy")
		}
	}
	require.Empty(t, rec.requests)
	for _, path := range guarded {
		require.Equal(t, http.StatusOK, h.do(request(http.MethodGet, "/clusters/aaaa"+path, "alice")).Code, "reading %s", path)
	}
	for _, path := range []string{
		"/api/v1/namespaces/default/configmaps", "/apis/example.com/v1/secrets", "/apis/apis.kcp.io/v1alpha1/apiexportendpointslices",
		"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
	} {
		require.Equal(t, http.StatusOK, h.do(request(http.MethodPost, "/clusters/aaaa"+path, "alice")).Code, path)
	}
	h.rights.setEnforced(true)
	for _, path := range guarded {
		require.Equal(t, http.StatusOK, h.do(request(http.MethodPost, "/clusters/aaaa"+path, "alice")).Code, path)
	}
}

package proxy_test

import (
	"bufio"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/proxy"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// kcpReads is how kcp's ClusterPathFromAndStrip reads a URL: the cluster, and
// the path as every handler after it sees it.
func kcpReads(t *testing.T, u *url.URL) (cluster, path, query string) {
	after, ok := strings.CutPrefix(u.Path, "/clusters/")
	require.True(t, ok)
	cluster, rest, _ := strings.Cut(after, "/")
	stripped := *u
	stripped.Path = "/" + rest
	read, err := url.Parse(stripped.String())
	require.NoError(t, err)
	return cluster, read.Path, read.RawQuery
}

// parsed is the request that net/http makes of what came over the wire; nil where
// it refuses to.
func parsed(text string) *http.Request {
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		return nil
	}
	return r
}

// FuzzClusterPath compares what the hub forwards with kcp's own parsing: kcp reads the
// cluster that was gated, the API alone below it, and the object that the hub reports.
func FuzzClusterPath(f *testing.F) {
	for _, seed := range []string{
		"/clusters/aaaa/api/v1/namespaces?watch=1", "/clusters/" + pathA + "/apis/apps/v1/deployments", "/clusters/aaaa", "/clusters/aaaa/",
		"/clusters/bbbb/api", "/clusters/aaaa/api/../../bbbb/api", "/clusters/aaaa/%2e%2e/bbbb/api", "/clusters/aaaa%2fapi", "//clusters/aaaa/api",
		"/clusters/*/api", "/clusters/aaaa/api//v1", "/clusters/aaaa/api/v1%2F..%2f|", "/clusters/root:kedge:orgs/api", "/clusters/system:admin/api",
		"https://kcp/clusters/aaaa/api", "/clusters/aaaa/services/x/clusters/*/api", "/clusters/aaaa/openapi/v3?a=;b#c", "/clusters/aaaa/api/%c0%af",
		"/clusters/aaaa/apis/rbac.authorization.k8s.io/v1/clusterroles/kedge:workspace:admin", "/clusters/aaaa/api/v1/a%20b%7c",
		"/clusters/aaaa/apis/rbac.authorization.k8s.io/v1/clusterroles/kedge%3Aworkspace%3aadmin", "/clusters/aaaa/api/v1/namespaces/a%3Fb%23c;d/e",
		"/clusters/aaaa/api/v1/watch/namespaces", "/clusters/aaaa/apis/a/v1/proxy/namespaces/b/c/d/e", "/clusters/aaaa/api/v1/watch",
		"/clusters/aaaa/api/v1/namespaces/status/finalize/status?watch", "/clusters/aaaa/api/v1/a?limit=x&watch=0&watch=1", "/clusters/aaaa/api/v1/%e2%80%a8",
	} {
		f.Add(seed)
	}
	kcp := &apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	f.Fuzz(func(t *testing.T, target string) {
		r := parsed("DELETE " + target + " HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer alice" + tokenSuffix + "\r\n\r\n")
		if r == nil {
			return
		}
		rec := &recorder{}
		var written tenancy.ObjectWrite
		w := newHub(t, kcpURL, rec, func(c *proxy.Config) {
			c.Wrote = func(_ tenancy.Entry, w tenancy.ObjectWrite) { written = w }
		}).do(r)
		if w.Code != http.StatusOK {
			require.Contains(t, []int{400, 401, 403, 404, 405}, w.Code)
			require.Empty(t, rec.requests)
			return
		}
		require.Len(t, rec.requests, 1)
		// The way over the wire.
		out := parsed("DELETE " + rec.requests[0].URL.RequestURI() + " HTTP/1.1\r\nHost: kcp\r\n\r\n")
		require.NotNil(t, out)
		cluster, path, query := kcpReads(t, out.URL)
		require.Equal(t, "aaaa", cluster)
		require.Equal(t, r.URL.RawQuery, query)
		// What the client wrote and what kcp reads are one path.
		_, asked, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/clusters/"), "/")
		require.Equal(t, "/"+asked, path)
		first, _, _ := strings.Cut(path[1:], "/")
		require.Contains(t, []string{"", "api", "apis", "openapi", "version", "healthz", "livez", "readyz"}, first)
		require.NotContains(t, path, "//")
		for segment := range strings.SplitSeq(path, "/") {
			require.NotContains(t, []string{".", ".."}, segment)
		}
		out.URL.Path, out.URL.RawPath = path, ""
		read, err := kcp.NewRequestInfo(out)
		require.NoError(t, err)
		require.Equal(t, []string{read.APIGroup, read.Resource, read.Name}, []string{written.Group, written.Resource, written.Name})
		if written.Namespace != read.Namespace {
			require.Equal(t, []string{"", read.Name}, []string{written.Namespace, read.Namespace})
		}
	})
}

// FuzzOutboundHeaders sends any block of headers: what reaches kcp is Alice, once,
// and nothing that is not on the list. She has sudo, and is elevated just where
// she asks for it.
func FuzzOutboundHeaders(f *testing.F) {
	for _, seed := range []string{
		"Accept: application/json\r\n", "X-Remote-User: system:admin\r\n", "Impersonate-User: bob\r\n", "impersonate_user: bob\r\n",
		"Connection: Authorization\r\n", "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n",
		"Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n", "Authorization: Bearer bob-token\r\n", " folded\r\n",
		"Transfer-Encoding: chunked\r\nTrailer: X-Remote-User\r\n", "Content-Length: 0\r\n", "Te: trailers\r\n",
		"Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nSec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.Ym9iLXRva2Vu\r\n",
		"Impersonate-User: " + alice + "\r\nImpersonate-Group: " + sudoers + "\r\nImpersonate-Group: " + everybody + "\r\n",
		"Impersonate-User: " + alice + "\r\nImpersonate-Group: " + sudoers + "\r\nImpersonate-Group: system:masters\r\n",
		"Impersonate-User: " + alice + "\r\nimpersonate-group: " + sudoers + "\r\nConnection: Impersonate-Group\r\n",
		"Impersonate-User: " + alice + "\r\nImpersonate-Group: " + sudoers + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nImpersonate-Uid: 1\r\n",
	} {
		f.Add(seed)
	}
	allowed := []string{
		"Accept", "Accept-Encoding", "Audit-Id", "Authorization", "Content-Type", "If-Match", "If-None-Match", "Kubectl-Command", "Kubectl-Session", "User-Agent",
	}
	upgrade := []string{
		"Connection", "Origin", "Sec-Websocket-Extensions", "Sec-Websocket-Key", "Sec-Websocket-Protocol", "Sec-Websocket-Version", "Upgrade", "X-Stream-Protocol-Version",
	}
	f.Fuzz(func(t *testing.T, block string) {
		r := parsed("GET " + execOfPod + " HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer alice" + tokenSuffix + "\r\n" + block + "\r\n\r\n")
		if r == nil {
			return
		}
		rec := &recorder{}
		h := newHub(t, kcpURL, rec)
		h.rights.set("alice", true, inWorkspace(v1alpha1.RoleMember))
		w := h.do(r)
		if w.Code != http.StatusOK {
			require.Contains(t, []int{400, 401, 403}, w.Code)
			require.Empty(t, rec.requests)
			require.Empty(t, h.elevated)
			return
		}
		out := rec.requests[0]
		require.Equal(t, []string{"Bearer alice" + tokenSuffix}, out.Header["Authorization"])
		require.Equal(t, []string{requestID}, out.Header["Audit-Id"])
		require.Equal(t, "kcp.test:6443", out.Host)
		require.Empty(t, out.Trailer)
		upgrading := len(out.Header["Upgrade"]) > 0
		asked, sudo := impersonated(r.Header), impersonated(out.Header)
		if len(asked) == 0 {
			require.Empty(t, sudo)
			require.Empty(t, h.elevated)
		} else {
			require.Len(t, h.elevated, 1)
			require.Equal(t, asked[user], sudo[user])
			require.ElementsMatch(t, asked[group], sudo[group])
			require.Equal(t, []string{alice}, sudo[user])
			require.Contains(t, [][]string{{sudoers}, {sudoers, everybody}}, sudo[group])
			require.Len(t, sudo, 2)
		}
		for name := range out.Header {
			if sudo[name] == nil && !slices.Contains(allowed, name) {
				require.True(t, upgrading && slices.Contains(upgrade, name), name)
			}
		}
		if upgrading {
			require.Contains(t, []string{"websocket", "spdy/3.1"}, strings.ToLower(out.Header.Get("Upgrade")))
			require.Equal(t, []string{"Upgrade"}, out.Header["Connection"])
		}
	})
}

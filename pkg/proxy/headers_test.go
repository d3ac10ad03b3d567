package proxy_test

import (
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHeaders_identitiesAndRoutesNeverPass(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"X-Remote-User", "X_Remote_User", "x-remote_group", "X-Remote-Extra-Scopes", "X-Remote-Uid", "X-REMOTE-USER",
		"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Uri", "Forwarded", "X-Real-Ip", "Via",
		"X-Original-Url", "X-Rewrite-Url", "X-Http-Method-Override", "X-Kubernetes-Sharded-Request", "X-Kcp-Cluster",
		"X-Kedge-Org", "X-Kedge-Workspace", "Cookie", "Proxy-Authorization", "Proxy-Connection", "Keep-Alive",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Host", "Audit-Id", "X-Request-Id", "Traceparent", "Baggage",
		"Origin", "Referer", "Expect", "Content-Encoding", "Range", "Sec-Websocket-Key", "Sec-Websocket-Protocol",
		"X-Stream-Protocol-Version", "Authorization2", "X-Authorization",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := &recorder{}
			w := newHub(t, kcpURL, rec).do(request(http.MethodGet, "/clusters/aaaa/api", "alice", name, "system:admin", "Accept", "application/json"))
			require.Equal(t, http.StatusOK, w.Code)
			got := rec.requests[0]
			// The hub's own Audit-Id, and an empty User-Agent, which sends none.
			require.Equal(t, http.Header{
				"Accept": {"application/json"}, "Authorization": {"Bearer alice" + tokenSuffix}, "Audit-Id": {requestID}, "User-Agent": {""},
			}, got.Header)
			require.Equal(t, "kcp.test:6443", got.Host)
		})
	}
}

func TestHeaders_thatClientsNeedPass(t *testing.T) {
	t.Parallel()
	rec := &recorder{}
	want := map[string]string{
		"Accept": "application/json;as=Table", "Accept-Encoding": "gzip", "Content-Type": "application/apply-patch+yaml",
		"If-Match": `"1"`, "If-None-Match": `"2"`, "User-Agent": "kubectl/v1.36", "Kubectl-Command": "kubectl get", "Kubectl-Session": "s",
	}
	var pairs []string
	for name, value := range want {
		pairs = append(pairs, name, value)
	}
	require.Equal(t, http.StatusOK, newHub(t, kcpURL, rec).do(request(http.MethodPatch, "/clusters/aaaa/api", "alice", pairs...)).Code)
	for name, value := range want {
		require.Equal(t, []string{value}, rec.requests[0].Header[name], name)
	}
}

func TestHeaders_connectionDoesNotRemoveTheIdentity(t *testing.T) {
	t.Parallel()
	rec := &recorder{}
	w := newHub(t, kcpURL, rec).do(request(http.MethodGet, "/clusters/aaaa/api", "alice",
		"Connection", "close, Accept, authorization", "Accept", "application/json", "Kubectl-Command", "kubectl get"))
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, http.Header{
		"Authorization": {"Bearer alice" + tokenSuffix}, "Audit-Id": {requestID}, "Kubectl-Command": {"kubectl get"}, "User-Agent": {""},
	}, rec.requests[0].Header)
}

func TestHeaders_aSecondIdentityIsRefused(t *testing.T) {
	t.Parallel()
	hidden := func(token string) string {
		return "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(token))
	}
	upgrade := []string{"Connection", "Upgrade", "Upgrade", "websocket"}
	for _, tc := range []struct {
		name   string
		code   int
		header []string
	}{
		{"none: the positive control", 200, nil},
		{"Authorization twice", 401, []string{"Authorization", "Bearer bob" + tokenSuffix}},
		{"the same Authorization twice", 401, []string{"Authorization", "Bearer alice" + tokenSuffix}},
		{"another's token in a subprotocol", 403, []string{"Sec-Websocket-Protocol", "v5.channel.k8s.io, " + hidden("bob"+tokenSuffix)}},
		{"another's token in a second line", 403, []string{"Sec-Websocket-Protocol", "v5.channel.k8s.io", "Sec-Websocket-Protocol", hidden("bob" + tokenSuffix)}},
		{"another's token, spelt otherwise", 403, []string{"Sec-Websocket-Protocol", strings.ToUpper(hidden("bob" + tokenSuffix))}},
		{"an undecodable token", 403, []string{"Sec-Websocket-Protocol", "base64url.bearer.authorization.k8s.io.%%"}},
		{"the empty token", 403, []string{"Sec-Websocket-Protocol", hidden("")}},
		{"the gated token", 200, []string{"Sec-Websocket-Protocol", hidden("alice" + tokenSuffix)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for _, extra := range [][]string{nil, upgrade} {
				rec := &recorder{}
				w := newHub(t, kcpURL, rec).do(request(http.MethodGet, execOfPod, "alice", append(extra, tc.header...)...))
				require.Equal(t, tc.code, w.Code, w.Body)
				require.NotContains(t, w.Body.String(), tokenSuffix)
				if tc.code != http.StatusOK {
					statusOf(t, w.Body.Bytes())
					require.Empty(t, rec.requests)
					continue
				}
				require.Equal(t, []string{"Bearer alice" + tokenSuffix}, rec.requests[0].Header["Authorization"])
			}
		})
	}
}

// execOfPod is a request that can be upgraded.
const execOfPod = "/clusters/aaaa/api/v1/namespaces/a/pods/b/exec"

// A tenant who adds two headers to lists and writes took them out of the limits of requests in flight, of their bytes
// and of the turn of each object, and had no deadline.
func TestUpgrade_takesNoRequestOutOfTheLimits(t *testing.T) {
	t.Parallel()
	for _, target := range []string{
		"/clusters/aaaa/api/v1/configmaps", "/clusters/aaaa/api/v1/namespaces/a/configmaps/b", "/clusters/aaaa/api",
		"/clusters/aaaa/api/v1/namespaces/a/configmaps?watch=false", "/clusters/aaaa/apis/exec/v1/exec",
		"/clusters/aaaa/api/v1/namespaces/a/pods/b/log", "/clusters/aaaa/api/v1/namespaces/exec",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
			rec := &recorder{}
			w := newHub(t, kcpURL, rec).do(request(method, target, "alice", "Connection", "Upgrade", "Upgrade", "websocket"))
			require.Equal(t, http.StatusBadRequest, w.Code, "%s %s", method, target)
			require.Contains(t, w.Body.String(), "header:Upgrade")
			require.Empty(t, rec.requests)
		}
	}
}

func TestUpgrade_toOtherThanStreamsIsRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		code   int
		header []string
	}{
		{"websocket", 200, []string{"Connection", "Upgrade", "Upgrade", "websocket"}},
		{"SPDY", 200, []string{"Connection", "keep-alive, upgrade", "Upgrade", "SPDY/3.1"}},
		{"h2c, in which every request would pass", 400, []string{"Connection", "Upgrade, HTTP2-Settings", "Upgrade", "h2c", "HTTP2-Settings", "AAMAAABk"}},
		{"TLS", 400, []string{"Connection", "Upgrade", "Upgrade", "TLS/1.2"}},
		{"two at once", 400, []string{"Connection", "Upgrade", "Upgrade", "websocket, h2c"}},
		{"two lines", 400, []string{"Connection", "Upgrade", "Upgrade", "websocket", "Upgrade", "h2c"}},
		{"one after an empty line", 200, []string{"Connection", "Upgrade", "Upgrade", "", "Upgrade", "h2c"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			rec := &recorder{}
			h := newHub(t, kcpURL, rec)
			w := h.do(request(http.MethodGet, execOfPod, "alice", append(tc.header,
				"X-Stream-Protocol-Version", "v4.channel.k8s.io", "Origin", "https://console.test")...))
			require.Equal(t, tc.code, w.Code, w.Body)
			if tc.code != http.StatusOK {
				require.Contains(t, w.Body.String(), "header:Upgrade")
				require.Empty(t, rec.requests)
				return
			}
			got := rec.requests[0].Header
			require.NotContains(t, got["Upgrade"], "h2c")
			if got.Get("Upgrade") != "" {
				require.Equal(t, []string{"Upgrade"}, got["Connection"])
				require.Equal(t, []string{"v4.channel.k8s.io"}, got["X-Stream-Protocol-Version"])
				require.Equal(t, []string{"https://console.test"}, got["Origin"])
			}
			require.Zero(t, h.streams(t))
		})
	}
}

func TestHeaders_trailersDoNotPass(t *testing.T) {
	t.Parallel()
	seen := make(chan *http.Request, 1)
	server, transport := kcp(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		seen <- r
	})
	url, client := serve(t, newHub(t, server.URL, transport))
	// A reader of unknown length goes out in chunks, which may have trailers.
	r, err := http.NewRequest(http.MethodPost, url+"/clusters/aaaa/api/v1/namespaces", io.MultiReader(strings.NewReader("{}")))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer alice"+tokenSuffix)
	r.Trailer = http.Header{"X-Remote-User": {"system:admin"}}
	response, err := client.Do(r)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	got := <-seen
	require.Empty(t, got.Trailer)
	require.Empty(t, got.Header["Trailer"])
	require.Equal(t, []string{"chunked"}, got.TransferEncoding)
}

func TestHeaders_kcpDoesNotSpeakForTheHub(t *testing.T) {
	t.Parallel()
	server, transport := kcp(t, func(w http.ResponseWriter, _ *http.Request) {
		for _, name := range []string{"Set-Cookie", "Alt-Svc", "X-Request-Id", "Audit-Id", "Etag", "Warning", "Content-Security-Policy", "X-Content-Type-Options"} {
			w.Header().Set(name, "kcp")
		}
		w.WriteHeader(http.StatusTeapot)
	})
	w := newHub(t, server.URL, transport).do(request(http.MethodGet, execOfPod, "alice"))
	require.Equal(t, http.StatusTeapot, w.Code)
	require.Equal(t, []string{requestID}, w.Header()["X-Request-Id"])
	require.Empty(t, w.Header()["Set-Cookie"])
	require.Empty(t, w.Header()["Alt-Svc"])
	require.Equal(t, []string{"sandbox; default-src 'none'"}, w.Header()["Content-Security-Policy"])
	require.Equal(t, []string{"nosniff"}, w.Header()["X-Content-Type-Options"])
	for _, name := range []string{"Audit-Id", "Etag", "Warning"} {
		require.Equal(t, "kcp", w.Header().Get(name), name)
	}
}

// A refusal can repeat what the client sent.
func TestHeaders_refusalsAreNoPages(t *testing.T) {
	t.Parallel()
	server, transport := kcp(t, func(http.ResponseWriter, *http.Request) {})
	h := newHub(t, server.URL, transport)
	for path, code := range map[string]int{"/clusters/<b>": http.StatusNotFound, "/clusters/zzzz/api": http.StatusForbidden} {
		w := h.do(request(http.MethodGet, path, "alice"))
		require.Equal(t, code, w.Code, path)
		require.Equal(t, "sandbox; default-src 'none'", w.Header().Get("Content-Security-Policy"), path)
		require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"), path)
	}
}

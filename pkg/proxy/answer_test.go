package proxy_test

import (
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ofKCP are the headers that kcp answers with, as test/integration/streams sees them.
func ofKCP() http.Header {
	return http.Header{
		"Content-Type": {"application/json"}, "Cache-Control": {"no-cache, private"}, "Vary": {"Accept", "Accept-Encoding"}, "Etag": {`"A1"`},
		"Warning": {`299 - "old"`}, "Retry-After": {"7"}, "Audit-Id": {"a"}, "Last-Modified": {"Thu, 01 Jan 1970 00:00:00 GMT"}, "Allow": {"GET"},
		"X-Kubernetes-Pf-Flowschema-Uid": {"f"}, "X-Kubernetes-Pf-Prioritylevel-Uid": {"p"}, "Date": {"Thu, 01 Jan 1970 00:00:00 GMT"},
		"Location": {"/clusters/aaaa/openapi/v3/apis/apps/v1?hash=B2"},
	}
}

// ofAProvider are the headers by which the server of a bound API would speak for the hub's origin.
func ofAProvider() http.Header {
	return http.Header{
		"Set-Cookie": {"__Host-kedge=x; Path=/; Secure"}, "Clear-Site-Data": {`"*"`},
		"Service-Worker-Allowed": {"/"}, "Alt-Svc": {`h3="evil.example:443"`},
		"Strict-Transport-Security":   {"max-age=0"},
		"Access-Control-Allow-Origin": {"*"}, "Access-Control-Allow-Credentials": {"true"},
		"Refresh": {"0; url=https://evil.example"}, "Link": {"</x.js>; rel=preload"}, "Www-Authenticate": {`Basic realm="log in"`}, "Server": {"evil"},
		"Report-To": {"{}"}, "Nel": {"{}"}, "Origin-Agent-Cluster": {"?0"}, "Sourcemap": {"/x"}, "X-Accel-Redirect": {"/etc/passwd"}, "X-Kedge-User": {"alice"},
		"Content-Location": {"https://evil.example"}, "Public-Key-Pins": {"x"},
		"Proxy-Authenticate": {"Basic"}, "X-Forwarded-For": {"x"}, "Cross-Origin-Opener-Policy": {"unsafe-none"},
	}
}

func TestAnswer_passesWhatKCPSendsAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, code := range []int{
		http.StatusOK, http.StatusCreated, http.StatusNotModified, http.StatusMovedPermanently,
		http.StatusUnauthorized, http.StatusNotFound, http.StatusTooManyRequests, http.StatusServiceUnavailable,
	} {
		server, transport := kcp(t, func(w http.ResponseWriter, _ *http.Request) {
			maps.Copy(w.Header(), ofKCP())
			maps.Copy(w.Header(), ofAProvider())
			w.WriteHeader(code)
		})
		url, client := serve(t, newHub(t, server.URL, transport))
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		r, err := http.NewRequest(http.MethodGet, url+"/clusters/aaaa/api/v1/namespaces", http.NoBody)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer alice"+tokenSuffix)
		response, err := client.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, code, response.StatusCode)
		want := ofKCP()
		want["X-Content-Type-Options"], want["X-Request-Id"] = []string{"nosniff"}, []string{requestID}
		want["Content-Security-Policy"] = []string{"sandbox; default-src 'none'"}
		got := response.Header.Clone()
		got.Del("Content-Length")
		if code == http.StatusNotModified {
			// Go's server removes it.
			want.Del("Content-Type")
		}
		require.Equal(t, want, got, "%d", code)
	}
}

func TestAnswer_redirectsWithinTheGatedClusterOnly(t *testing.T) {
	t.Parallel()
	for location, want := range map[string]string{
		"/clusters/aaaa/openapi/v3?hash=1": "/clusters/aaaa/openapi/v3?hash=1", "/clusters/aaaa/api": "/clusters/aaaa/api",
		// kcp leaves the cluster out.
		"/openapi/v3/api/v1?hash=1": "/clusters/aaaa/openapi/v3/api/v1?hash=1", "/api/orgs": "/clusters/aaaa/api/orgs",
		"https://evil.example/": "", "//evil.example/clusters/aaaa/api": "", "/clusters/bbbb/api": "", "/clusters/aaaa/../bbbb/api": "", "/../api": "",
		"/clusters/aaaa/%2e%2e/bbbb":   "",
		"/clusters/aaaa/%2e%2e%2fbbbb": "", `/\evil.example/clusters/aaaa/`: "", `\\evil.example`: "", "/clusters": "",
		"javascript:alert(1)": "", "": "", "/clusters/aaaa": "", "https://user@hub/clusters/aaaa/api": "", "api": "", "?x": "", "/%2fevil.example": "",
	} {
		server, transport := kcp(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Location"] = []string{location}
			w.WriteHeader(http.StatusTemporaryRedirect)
		})
		w := newHub(t, server.URL, transport).do(request(http.MethodGet, "/clusters/aaaa/api", "alice"))
		require.Equal(t, http.StatusTemporaryRedirect, w.Code)
		require.Equal(t, want, w.Header().Get("Location"), "%q", location)
	}
}

func TestAnswer_trailersDoNotPass(t *testing.T) {
	t.Parallel()
	server, transport := kcp(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "Set-Cookie, Etag")
		_, _ = io.WriteString(w, "hello")
		w.(http.Flusher).Flush()
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Etag", "x")
		w.Header().Set(http.TrailerPrefix+"Clear-Site-Data", `"*"`)
	})
	url, client := serve(t, newHub(t, server.URL, transport))
	for _, watch := range []string{"", "?watch=true"} {
		r, err := http.NewRequest(http.MethodGet, url+"/clusters/aaaa/api/v1/namespaces"+watch, http.NoBody)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer alice"+tokenSuffix)
		response, err := client.Do(r)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, "hello", string(body), "the control")
		require.Empty(t, response.Trailer)
		require.Empty(t, response.Header["Trailer"])
	}
}

// An informational answer would remove the headers that the hub has set.
func TestAnswer_informationalOnesDoNotPass(t *testing.T) {
	t.Parallel()
	server, transport := kcp(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</x.js>; rel=preload")
		w.Header().Set("Set-Cookie", "a=b")
		w.WriteHeader(http.StatusEarlyHints)
		clear(w.Header())
		_, _ = io.WriteString(w, "hello")
	})
	recorded := httptest.NewRecorder()
	newHub(t, server.URL, transport).ServeHTTP(informed{recorded, t}, request(http.MethodGet, "/clusters/aaaa/api", "alice"))
	require.Equal(t, "hello", recorded.Body.String())
	require.Equal(t, http.StatusOK, recorded.Code)
	require.Equal(t, "nosniff", recorded.Header().Get("X-Content-Type-Options"))
	require.Equal(t, requestID, recorded.Header().Get("X-Request-Id"))
	require.Empty(t, recorded.Header()["Set-Cookie"])
}

// informed fails the test at an informational answer.
type informed struct {
	*httptest.ResponseRecorder
	t *testing.T
}

func (i informed) WriteHeader(code int) {
	require.GreaterOrEqual(i.t, code, 200)
	i.ResponseRecorder.WriteHeader(code)
}

func TestAnswer_ofAnUpgradeHasTheHeadersOfItsProtocol(t *testing.T) {
	t.Parallel()
	server, transport := kcp(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"+
			"X-Stream-Protocol-Version: v4.channel.k8s.io\r\n"+
			"Sec-WebSocket-Accept: s\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\nSec-WebSocket-Extensions: e\r\nAudit-Id: a\r\n"+
			"Set-Cookie: a=b\r\nAccess-Control-Allow-Origin: *\r\nStrict-Transport-Security: max-age=0\r\nTrailer: X\r\n\r\n")
	})
	front := httptest.NewServer(newHub(t, server.URL, transport))
	t.Cleanup(front.Close)
	conn, err := net.DialTimeout("tcp", front.Listener.Addr().String(), 10*time.Second)
	require.NoError(t, err)
	_, response := upgrade(t, conn, "alice")
	require.Equal(t, http.StatusSwitchingProtocols, response.StatusCode)
	// Go's server writes a length of 0.
	response.Header.Del("Content-Length")
	require.Equal(t, []string{
		"Audit-Id", "Connection", "Content-Security-Policy", "Sec-Websocket-Accept", "Sec-Websocket-Extensions", "Sec-Websocket-Protocol", "Upgrade",
		"X-Content-Type-Options", "X-Request-Id", "X-Stream-Protocol-Version",
	}, slices.Sorted(maps.Keys(response.Header)))
	require.Equal(t, "nosniff", response.Header.Get("X-Content-Type-Options"))
}

package proxy_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// wire is a hub behind a plain listener, and what its kcp was asked for.
type wire struct {
	address string
	mu      sync.Mutex
	asked   []string
}

func newWire(t *testing.T) *wire {
	w := &wire{}
	server, transport := kcp(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.asked = append(w.asked, r.Method+" "+r.RequestURI+" "+r.Header.Get("Authorization")+" "+string(body))
	})
	front := httptest.NewServer(newHub(t, server.URL, transport))
	t.Cleanup(front.Close)
	w.address = front.Listener.Addr().String()
	return w
}

// send writes bytes and returns the status of each answer until the connection
// ends.
func (w *wire) send(t *testing.T, text string) (codes []int) {
	t.Helper()
	conn, err := net.Dial("tcp", w.address)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	require.NoError(t, conn.SetDeadline(time.Now().Add(deadline)))
	_, err = io.WriteString(conn, text)
	require.NoError(t, err)
	reader := bufio.NewReader(conn)
	for {
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			return codes
		}
		_, _ = io.Copy(io.Discard, response.Body)
		codes = append(codes, response.StatusCode)
	}
}

// TestProxy_onTheWire sends what no well-behaved client sends. Each case has one
// rightful request at its end or is refused whole; whatever happens, kcp is asked
// for nothing but Alice's own cluster.
func TestProxy_onTheWire(t *testing.T) {
	t.Parallel()
	const (
		auth  = "Authorization: Bearer alice" + tokenSuffix + "\r\n"
		head  = " HTTP/1.1\r\nHost: hub\r\n" + auth
		mine  = "GET /clusters/aaaa/api" + head + "Connection: close\r\n\r\n"
		his   = "GET /clusters/bbbb/api" + head + "\r\n"
		asked = "GET /clusters/aaaa/api Bearer alice" + tokenSuffix + " "
	)
	for _, tc := range []struct {
		name, text string
		codes      []int
		asked      []string
	}{
		{"the positive control", mine, []int{200}, []string{asked}},
		{"two slashes first", "GET //clusters/aaaa/api" + head + "\r\n" + mine, []int{404, 200}, []string{asked}},
		{"an authority in the path", "GET //kcp/clusters/aaaa/api" + head + "\r\n" + mine, []int{404, 200}, []string{asked}},
		{"dot-dot, encoded", "GET /clusters/%2e%2e/metrics" + head + "\r\n" + mine, []int{404, 200}, []string{asked}},
		{"dot-dot", "GET /clusters/aaaa/api/../../bbbb/api" + head + "\r\n" + mine, []int{404, 200}, []string{asked}},
		{"an encoded slash beside an odd byte", "GET /clusters/aaaa/api%2Fv1/a|b" + head + "\r\n" + mine, []int{404, 200}, []string{asked}},
		{"absolute form", "GET https://kcp/clusters/aaaa/api" + head + "\r\n" + mine, []int{404, 200}, []string{asked}},
		{"a fragment", "GET /clusters/aaaa/api#x" + head + "\r\n" + mine, []int{404, 200}, []string{asked}},
		{"a fragment in the query", "GET /clusters/aaaa/api?a#x" + head + "\r\n" + mine, []int{400, 200}, []string{asked}},
		{"CONNECT", "CONNECT kcp:6443" + head + "\r\n" + mine, []int{405, 200}, []string{asked}},
		{"CONNECT to a path", "CONNECT /clusters/aaaa/api" + head + "\r\n" + mine, []int{405, 200}, []string{asked}},
		{"TRACE", "TRACE /clusters/aaaa/api" + head + "\r\n" + mine, []int{405, 200}, []string{asked}},
		{"pipelining to a second cluster", "GET /clusters/aaaa/api" + head + "\r\n" + his + mine, []int{200, 403, 200}, []string{asked, asked}},
		{"a second request after an upgrade that kcp declined",
			"GET " + execOfPod + head + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + his + mine, []int{200, 403, 200},
			[]string{strings.Replace(asked, "/clusters/aaaa/api", execOfPod, 1), asked}},
		{"Content-Length and Transfer-Encoding",
			"POST /clusters/aaaa/api" + head + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" + his + mine,
			[]int{200, 403, 200}, []string{"POST /clusters/aaaa/api Bearer alice" + tokenSuffix + " {}", asked}},
		{"two Content-Lengths", "POST /clusters/aaaa/api" + head + "Content-Length: 0\r\nContent-Length: 9\r\n\r\n" + his, []int{400}, nil},
		{"an unknown Transfer-Encoding", "POST /clusters/aaaa/api" + head + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + his, []int{501}, nil},
		{"a space before the colon", "GET /clusters/aaaa/api HTTP/1.1\r\nHost: hub\r\nAuthorization : Bearer alice" + tokenSuffix + "\r\n\r\n" + mine, []int{400}, nil},
		{"a folded Authorization", "GET /clusters/aaaa/api HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer\r\n bob" + tokenSuffix + "\r\n\r\n" + mine, []int{403, 200}, []string{asked}},
		{"Authorization twice", "GET /clusters/aaaa/api" + head + auth + "\r\n" + mine, []int{401, 200}, []string{asked}},
		{"Authorization twice, once in lower case", "GET /clusters/aaaa/api" + head + strings.ToLower(auth) + "\r\n" + mine, []int{401, 200}, []string{asked}},
		{"a line break in the query", "GET /clusters/aaaa/api?a=%0d%0aX:%20y" + head + "\r\n" + mine, []int{200, 200},
			[]string{"GET /clusters/aaaa/api?a=%0d%0aX:%20y Bearer alice" + tokenSuffix + " ", asked}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWire(t)
			codes := w.send(t, tc.text)
			// What comes after a request that net/http does not trust is not read.
			require.GreaterOrEqual(t, len(codes), 1)
			require.Equal(t, tc.codes, codes)
			w.mu.Lock()
			defer w.mu.Unlock()
			require.Equal(t, tc.asked, w.asked)
		})
	}
}

func TestProxy_servesHTTP2Alike(t *testing.T) {
	t.Parallel()
	server, transport := kcp(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto+" "+r.RequestURI)
	})
	front := httptest.NewUnstartedServer(newHub(t, server.URL, transport))
	front.EnableHTTP2 = true
	front.StartTLS()
	t.Cleanup(front.Close)
	for path, code := range map[string]int{"aaaa/api": 200, "aaaa/metrics": 404, "bbbb/api": 403, "aaaa/api?watch=1": 200} {
		response := get(t, front.Client(), front.URL+"/clusters/"+path)
		require.Equal(t, 2, response.ProtoMajor)
		require.Equal(t, code, response.StatusCode, path)
		if code == http.StatusOK {
			body, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			require.Equal(t, "HTTP/1.1 /clusters/"+path, string(body), "kcp is spoken to in HTTP/1.1, for the upgrades")
		}
	}
}

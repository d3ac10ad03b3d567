package proxy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkGet is what the proxy adds to a read: the same request straight and
// through the hub, over TLS both times.
func BenchmarkGet(b *testing.B) {
	answer := strings.Repeat("x", 2000)
	server, transport := kcp(b, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	})
	front := httptest.NewTLSServer(newHub(b, server.URL, transport))
	b.Cleanup(front.Close)
	for _, bb := range []struct {
		name   string
		server *httptest.Server
	}{{"straight", server}, {"hub", front}} {
		client := bb.server.Client()
		client.Transport.(*http.Transport).MaxIdleConnsPerHost = 64
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					r, err := http.NewRequest(http.MethodGet, bb.server.URL+"/clusters/aaaa/api/v1/namespaces", nil)
					require.NoError(b, err)
					r.Header.Set("Authorization", "Bearer alice"+tokenSuffix)
					response, err := client.Do(r)
					require.NoError(b, err)
					n, err := io.Copy(io.Discard, response.Body)
					require.NoError(b, err)
					require.EqualValues(b, len(answer), n)
					require.NoError(b, response.Body.Close())
				}
			})
		})
	}
}

// BenchmarkServe is the hub's own part of it: shape, gate and clean, with a kcp
// that answers at once.
func BenchmarkServe(b *testing.B) {
	h := newHub(b, kcpURL, roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}))
	r := request(http.MethodGet, "/clusters/aaaa/api/v1/namespaces?limit=500", "alice", "Accept", "application/json", "User-Agent", "kubectl")
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
}

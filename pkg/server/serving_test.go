package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/certs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

// served is the public listener of a hub that answers every request with 200.
type served struct {
	addr string
	tls  *tls.Config
}

func newServed(t *testing.T, change func(*Options)) served {
	t.Helper()
	o := NewOptions()
	change(o)
	config, err := o.Complete()
	require.NoError(t, err)
	certificate, err := certs.NewServing(certs.Options{Dir: t.TempDir()}, time.Now())
	require.NoError(t, err)
	h := &hub{config: config}
	h.limits, err = httpmw.NewLimits(clock.RealClock{}, prometheus.NewRegistry())
	require.NoError(t, err)
	inner, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l, err := h.limits.Connections(inner, config.ConnectionLimits())
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	go func() { done <- serve(ctx, h.newHTTPServer(ctx, handler, certificate.TLS()), l, time.Millisecond) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate.CA())
	return served{inner.Addr().String(), &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
}

// dial opens a TCP connection with a deadline.
func (s served) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(3*readHeaderTimeout)))
	return conn
}

// dialTLS opens a TLS connection for a protocol.
func (s served) dialTLS(t *testing.T, protocol string) net.Conn {
	t.Helper()
	config := s.tls.Clone()
	config.ServerName, config.NextProtos = "127.0.0.1", []string{protocol}
	conn := tls.Client(s.dial(t), config)
	require.NoError(t, conn.HandshakeContext(t.Context()))
	return conn
}

// timedOut reports whether a connection was still open at the deadline of the test.
func timedOut(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

func TestServe_closesConnectionsThatSendSlowly(t *testing.T) {
	t.Parallel()
	s := newServed(t, func(*Options) {})
	half := s.dialTLS(t, "http/1.1")
	_, err := io.WriteString(half, "GET /healthz HTTP/1.1\r\nHost: hub\r\nX-Slow: ")
	require.NoError(t, err)
	// They wait together.
	for name, conn := range map[string]net.Conn{
		"no TLS handshake": s.dial(t), "no request": s.dialTLS(t, "http/1.1"), "no HTTP/2 preface": s.dialTLS(t, "h2"), "half a header": half,
	} {
		_, err := io.Copy(io.Discard, conn)
		require.False(t, timedOut(err), "%s: the connection is still open", name)
	}
}

func TestServe_refusesAHeaderThatIsTooLarge(t *testing.T) {
	t.Parallel()
	s := newServed(t, func(*Options) {})
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: s.tls}}
	t.Cleanup(client.CloseIdleConnections)
	for size, want := range map[int]int{maxHeaderBytes / 2: http.StatusOK, 2 * maxHeaderBytes: http.StatusRequestHeaderFieldsTooLarge} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.addr+"/", http.NoBody)
		require.NoError(t, err)
		r.Header.Set("X-Large", strings.Repeat("x", size))
		response, err := client.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, want, response.StatusCode, size)
	}
}

func TestServe_limitsTheStreamsOfAnHTTP2Connection(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{NewOptions().Limits.MaxStreamsPerConnection, 7} {
		s := newServed(t, func(o *Options) { o.Limits.MaxStreamsPerConnection = limit })
		conn := s.dialTLS(t, "h2")
		_, err := io.WriteString(conn, http2.ClientPreface)
		require.NoError(t, err)
		framer := http2.NewFramer(conn, conn)
		require.NoError(t, framer.WriteSettings())
		frame, err := framer.ReadFrame()
		require.NoError(t, err)
		streams, ok := frame.(*http2.SettingsFrame).Value(http2.SettingMaxConcurrentStreams)
		require.True(t, ok)
		require.EqualValues(t, limit, streams)
	}
}

func TestServe_limitsConnectionsBeforeTLS(t *testing.T) {
	t.Parallel()
	s := newServed(t, func(o *Options) { o.Limits.MaxConnectionsPerPeer = 2 })
	s.dialTLS(t, "h2")
	s.dialTLS(t, "h2")
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.addr)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
		require.NoError(t, conn.SetDeadline(time.Now().Add(readHeaderTimeout/2)))
		_, err = io.Copy(io.Discard, conn)
		require.False(t, timedOut(err))
	}
}

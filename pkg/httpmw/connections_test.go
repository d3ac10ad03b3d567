package httpmw_test

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

// deadline bounds every wait of a test.
const deadline = 10 * time.Second

// greeter greets every connection that a limited listener accepts and keeps it open until the
// client closes it.
type greeter struct {
	t    *testing.T
	addr string
}

func newGreeter(t *testing.T, limits *httpmw.Limits, c httpmw.ConnectionLimits) *greeter {
	t.Helper()
	inner, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l, err := limits.Connections(inner, c)
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.WriteString(conn, "hello")
				_, _ = io.Copy(io.Discard, conn)
				_ = conn.Close()
				_ = conn.Close()
			}()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return &greeter{t, inner.Addr().String()}
}

// dial connects from a loopback address and reports whether it was greeted.
func (g *greeter) dial(from string) (net.Conn, bool) {
	g.t.Helper()
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 0)), Timeout: deadline}
	conn, err := d.DialContext(g.t.Context(), "tcp", g.addr)
	if errors.Is(err, syscall.ECONNRESET) {
		// The listener was faster than the dialer.
		return nil, false
	}
	require.NoError(g.t, err)
	g.t.Cleanup(func() { _ = conn.Close() })
	require.NoError(g.t, conn.SetDeadline(time.Now().Add(deadline)))
	_, err = io.ReadFull(conn, make([]byte, len("hello")))
	return conn, err == nil
}

func (g *greeter) requireAccepted(from string) net.Conn {
	g.t.Helper()
	conn, ok := g.dial(from)
	require.True(g.t, ok)
	return conn
}

func (g *greeter) requireRefused(from string) {
	g.t.Helper()
	_, ok := g.dial(from)
	require.False(g.t, ok)
}

// eventuallyAccepted waits until the listener has noticed that a connection was closed.
func (g *greeter) eventuallyAccepted(from string) {
	g.t.Helper()
	require.Eventually(g.t, func() bool { _, ok := g.dial(from); return ok }, deadline, time.Millisecond)
}

func TestConnections_refuseAPeerThatHoldsTooMany(t *testing.T) {
	t.Parallel()
	limits, _, registry := newLimits(t)
	g := newGreeter(t, limits, httpmw.ConnectionLimits{PerPeer: 2})
	first := g.requireAccepted("127.0.0.2")
	g.requireAccepted("127.0.0.2")
	g.requireRefused("127.0.0.2")
	requireRefused(t, registry, "connections_per_peer", 1)
	g.requireAccepted("127.0.0.3")
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP kedge_connections Open connections of clients, upgraded ones included.
# TYPE kedge_connections gauge
kedge_connections 3
`), "kedge_connections"))
	require.NoError(t, first.Close())
	g.eventuallyAccepted("127.0.0.2")
	g.requireRefused("127.0.0.2")
}

func TestConnections_exemptTrustedProxiesFromPerPeer(t *testing.T) {
	t.Parallel()
	limits, _, registry := newLimits(t)
	g := newGreeter(t, limits, httpmw.ConnectionLimits{All: 4, PerPeer: 1, Trusted: httpmw.TrustedProxies{netip.MustParsePrefix("127.0.0.9/32")}})
	for range 3 {
		g.requireAccepted("127.0.0.9")
	}
	g.requireAccepted("127.0.0.2")
	g.requireRefused("127.0.0.2")
	requireRefused(t, registry, "connections_per_peer", 1)
	g.requireRefused("127.0.0.9")
	requireRefused(t, registry, "connections", 1)
}

func TestConnections_refuseTooManyInAll(t *testing.T) {
	t.Parallel()
	limits, _, registry := newLimits(t)
	g := newGreeter(t, limits, httpmw.ConnectionLimits{All: 2})
	first := g.requireAccepted("127.0.0.2")
	g.requireAccepted("127.0.0.3")
	g.requireRefused("127.0.0.4")
	requireRefused(t, registry, "connections", 1)
	require.NoError(t, first.Close())
	g.eventuallyAccepted("127.0.0.4")
}

func TestConnections_haveNoLimitAtZero(t *testing.T) {
	t.Parallel()
	limits, _, _ := newLimits(t)
	g := newGreeter(t, limits, httpmw.ConnectionLimits{})
	for range 50 {
		g.requireAccepted("127.0.0.2")
	}
}

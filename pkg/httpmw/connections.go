package httpmw

import (
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// ConnectionLimits are the limits of open connections. Zero means no limit.
type ConnectionLimits struct {
	// All is the number of open connections of all peers.
	All int
	// PerPeer is the number of open connections of one IPv4 address or one IPv6 /64. It does not
	// hold for Trusted, which connect for many clients.
	PerPeer int
	Trusted TrustedProxies
}

// Connections returns a listener that closes connections over the limits at once, before TLS.
func (l *Limits) Connections(inner net.Listener, c ConnectionLimits) (net.Listener, error) {
	open := prometheus.NewGauge(prometheus.GaugeOpts{Name: "kedge_connections", Help: "Open connections of clients, upgraded ones included."})
	if err := l.registry.Register(open); err != nil {
		return nil, fmt.Errorf("register connection metrics: %w", err)
	}
	return &limitedListener{
		Listener: inner, limits: c, open: open, peers: map[netip.Addr]int{},
		refusedAll: l.refused.WithLabelValues("connections"), refusedPeer: l.refused.WithLabelValues("connections_per_peer"),
	}, nil
}

type limitedListener struct {
	net.Listener
	limits                  ConnectionLimits
	open                    prometheus.Gauge
	refusedAll, refusedPeer prometheus.Counter

	mu  sync.Mutex
	all int
	// peers counts the open connections of each peer that has one.
	peers map[netip.Addr]int
}

// Accept returns the next connection within the limits.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		addr := socketPeer(c.RemoteAddr().String())
		peer := network(addr)
		if refused := l.add(peer, l.limits.Trusted.contain(addr)); refused != nil {
			refused.Inc()
			reset(c)
			continue
		}
		return &countedConn{Conn: c, remove: sync.OnceFunc(func() { l.remove(peer) })}, nil
	}
}

// reset closes a connection without TIME_WAIT, so that a flood of connections leaves no state in
// the kernel.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// add counts a connection. It returns the counter of the limit if one is reached.
func (l *limitedListener) add(peer netip.Addr, trusted bool) prometheus.Counter {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.limits.PerPeer > 0 && !trusted && l.peers[peer] >= l.limits.PerPeer:
		return l.refusedPeer
	case l.limits.All > 0 && l.all >= l.limits.All:
		return l.refusedAll
	}
	l.all++
	l.peers[peer]++
	l.open.Inc()
	return nil
}

func (l *limitedListener) remove(peer netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.peers[peer]--; l.peers[peer] == 0 {
		delete(l.peers, peer)
	}
	l.open.Dec()
}

// countedConn is a connection that counts until it is closed.
type countedConn struct {
	net.Conn
	remove func()
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.remove()
	return c.Conn.Close()
}

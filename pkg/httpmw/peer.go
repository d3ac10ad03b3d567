package httpmw

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// forwardedFor is the header in which reverse proxies append the address that connected to them.
const forwardedFor = "X-Forwarded-For"

// TrustedProxies are the networks of the reverse proxies whose X-Forwarded-For is believed.
type TrustedProxies []netip.Prefix

func (t TrustedProxies) contain(a netip.Addr) bool {
	return slices.ContainsFunc(t, func(p netip.Prefix) bool { return p.Contains(a) })
}

// peer returns the address of the client of a request. It is the socket's peer or, if that is a
// trusted proxy, the rightmost address in X-Forwarded-For that is not one. Every address further
// left may be invented by the client. A hop that is no address ends the search at the proxy that
// reported it.
func (t TrustedProxies) peer(r *http.Request) netip.Addr {
	peer := socketPeer(r.RemoteAddr)
	lines := r.Header[forwardedFor]
	for i := len(lines) - 1; i >= 0; i-- {
		for rest, more := lines[i], true; more; {
			if !t.contain(peer) {
				return peer
			}
			hop := rest
			if comma := strings.LastIndexByte(rest, ','); comma >= 0 {
				hop, rest = rest[comma+1:], rest[:comma]
			} else {
				more = false
			}
			addr, ok := hopAddr(strings.Trim(hop, " \t"))
			if !ok {
				return peer
			}
			peer = addr
		}
	}
	return peer
}

// hopAddr parses a hop of X-Forwarded-For. Some proxies append the port.
func hopAddr(hop string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(hop)
	if err != nil {
		withPort, err := netip.ParseAddrPort(hop)
		if err != nil {
			return netip.Addr{}, false
		}
		addr = withPort.Addr()
	}
	return addr.Unmap().WithZone(""), true
}

// socketPeer parses the remote address of a connection. It returns the zero Addr for a connection
// that is not TCP.
func socketPeer(remote string) netip.Addr {
	parsed, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	return parsed.Addr().Unmap().WithZone("")
}

// network returns the network that limits per peer count: the address itself, or the /64 of an
// IPv6 address, because one client has all addresses of its /64.
func network(a netip.Addr) netip.Addr {
	if !a.Is6() {
		return a
	}
	// An IPv6 address has a prefix of 64 bits.
	p, _ := a.Prefix(64)
	return p.Addr()
}

// origin says where a request comes from.
type origin struct {
	peer netip.Addr
	// id is the request id, clientID the one that the client sent, or empty.
	id, clientID string
	// caller is nil until the caller is authenticated. It is set also for one who is refused
	// afterwards.
	caller *Caller
	// place finds the place of a proxied write in the tree. It is nil for any other request.
	place func() Place
}

type originKey struct{}

// identified records the caller of a request.
func identified(r *http.Request, c *Caller) {
	if o, ok := r.Context().Value(originKey{}).(*origin); ok {
		o.caller = c
	}
}

// Peer returns the address of the client of a request, as Observe found it. Without Observe it is
// the peer of the connection.
func Peer(r *http.Request) netip.Addr {
	if o, ok := r.Context().Value(originKey{}).(*origin); ok {
		return o.peer
	}
	return socketPeer(r.RemoteAddr)
}

// peerFrom returns the peer of the request that a context belongs to, or the zero Addr.
func peerFrom(ctx context.Context) netip.Addr {
	if o, ok := ctx.Value(originKey{}).(*origin); ok {
		return o.peer
	}
	return netip.Addr{}
}

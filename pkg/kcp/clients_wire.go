package kcp

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// What the hub's own requests wait for at most, whatever their contexts allow.
// None of it cuts a watch: that has its headers at once, and a connection on which
// nothing happens is kept as long as it answers pings.
const (
	dialTimeout      = 3 * time.Second
	handshakeTimeout = 5 * time.Second
	// headerTimeout is long enough for the longest list.
	headerTimeout = 30 * time.Second
	// A connection on which nothing came for pingAfter is asked whether it is there
	// still, and given up after pingTimeout: all requests share it, and the next
	// ones must not wait for a kcp that is not at its other end any more. The answers
	// are a sign of life, too, while kcp is slow.
	pingAfter, pingTimeout = 500 * time.Millisecond, 3 * time.Second
	idleTimeout            = 90 * time.Second
)

// wire is what every request of the hub's own goes through in the end. Who has a
// client certificate has connections of their own, and new ones with a new one:
// those that there are may be kept open by watches for as long as they like.
type wire struct {
	*http.Transport
	pulse *Pulse

	mu        sync.Mutex
	certified map[*credential]*certified
}

type certified struct {
	*http.Transport
	as *identity
}

func newWire(config *rest.Config, pulse *Pulse) (*wire, error) {
	transport, err := newTransport(config, pulse)
	return &wire{Transport: transport, pulse: pulse, certified: map[*credential]*certified{}}, err
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	transport := w.Transport
	if as, ok := r.Context().Value(identityKey{}).(*identity); ok && len(as.config.CertData) > 0 {
		var err error
		if transport, err = w.of(as); err != nil {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, err
		}
	}
	return transport.RoundTrip(r)
}

func (w *wire) of(as *identity) (*http.Transport, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.certified[as.of]
	if old != nil && old.as.version >= as.version {
		return old.Transport, nil
	}
	transport, err := newTransport(as.config, w.pulse)
	if err != nil {
		return nil, err
	}
	if old != nil {
		old.CloseIdleConnections()
	}
	w.certified[as.of] = &certified{Transport: transport, as: as}
	return transport, nil
}

// CloseIdleConnections closes the connections that nothing uses.
func (w *wire) CloseIdleConnections() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Transport.CloseIdleConnections()
	for _, c := range w.certified {
		c.CloseIdleConnections()
	}
}

func newTransport(config *rest.Config, pulse *Pulse) (*http.Transport, error) {
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	proxy := http.ProxyFromEnvironment
	if config.Proxy != nil {
		proxy = config.Proxy
	}
	dial := config.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	return &http.Transport{
		Proxy: proxy,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return hearing{Conn: conn, heard: &pulse.heard}, nil
		},
		TLSClientConfig:       tls,
		TLSHandshakeTimeout:   handshakeTimeout,
		ResponseHeaderTimeout: headerTimeout,
		IdleConnTimeout:       idleTimeout,
		MaxIdleConnsPerHost:   25,
		DisableCompression:    config.DisableCompression,
		ForceAttemptHTTP2:     true,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout, WriteByteTimeout: pingTimeout},
	}, nil
}

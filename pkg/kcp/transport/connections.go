package transport

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// The longest waits of the hub's own requests, whatever their contexts allow. None of
// them ends a watch: its headers arrive at once, and an idle connection is kept as long
// as it answers pings.
const (
	dialTimeout      = 3 * time.Second
	handshakeTimeout = 5 * time.Second
	// headerTimeout is long enough for the longest list.
	headerTimeout = 30 * time.Second
	// A connection that is silent for pingAfter gets a ping, and is closed after
	// pingTimeout without an answer: all requests share it, and the next one must not
	// wait for a kcp that has gone. The answers to pings are signs of life while kcp is
	// slow.
	pingAfter, pingTimeout = 500 * time.Millisecond, 3 * time.Second
	idleTimeout            = 90 * time.Second
)

// connections are the bottom of every chain. A client certificate has connections of its
// own, and a new certificate has new ones: watches keep the old ones open.
type connections struct {
	*http.Transport
	health *Health

	mu        sync.Mutex
	certified map[*credential]*certified
}

type certified struct {
	*http.Transport
	as *identity
}

func newConnections(config *rest.Config, health *Health) (*connections, error) {
	transport, err := newTransport(config, health)
	return &connections{Transport: transport, health: health, certified: map[*credential]*certified{}}, err
}

func (w *connections) RoundTrip(r *http.Request) (*http.Response, error) {
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

func (w *connections) of(as *identity) (*http.Transport, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.certified[as.of]
	if old != nil && old.as.version >= as.version {
		return old.Transport, nil
	}
	transport, err := newTransport(as.config, w.health)
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
func (w *connections) CloseIdleConnections() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Transport.CloseIdleConnections()
	for _, c := range w.certified {
		c.CloseIdleConnections()
	}
}

func newTransport(config *rest.Config, health *Health) (*http.Transport, error) {
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
			return liveConn{Conn: conn, alive: &health.heard}, nil
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

package transport

import (
	"context"
	"fmt"
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

// connections are the identities of a Transport, to close what is idle and to renew them.
type connections struct {
	mu  sync.Mutex
	all []*identity
}

// open returns an identity with connections of its own: a client certificate authenticates
// everything that is sent on them.
func (c *connections) open(config *rest.Config, health *Health) (*identity, error) {
	transport, err := newTransport(config, health)
	if err != nil {
		return nil, fmt.Errorf("make the HTTP client for kcp: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	opened := &identity{Connections: NewConnections(transport), config: config}
	c.all = append(c.all, opened)
	return opened, nil
}

func (c *connections) closeIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range c.all {
		id.CloseIdleConnections()
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

// fresh sends each request on a connection of its own, which is closed after it.
type fresh struct{ of *identity }

// RoundTrip implements http.RoundTripper.
func (f fresh) RoundTrip(r *http.Request) (*http.Response, error) {
	once := f.of.now.Load().Clone()
	once.DisableKeepAlives = true
	return once.RoundTrip(r)
}

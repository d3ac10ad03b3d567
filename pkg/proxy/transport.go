package proxy

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"time"
)

// upstreamIdle is the number of idle connections to kcp that are kept, for concurrent requests.
const upstreamIdle = 512

// NewTransport returns the transport to kcp for proxied requests. It has kcp's CA and no credential,
// because proxied requests carry the caller's own. It uses the proxy of the kubeconfig, as the
// hub's own requests do. hear gets its connections: a kcp that answers tenants is available, even if it is too busy to
// answer the hub in time.
func NewTransport(config *tls.Config, through func(*http.Request) (*url.URL, error), hear func(net.Conn) net.Conn) *http.Transport {
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:           through,
		TLSClientConfig: config,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return hear(conn), nil
		},
		TLSHandshakeTimeout:   5 * time.Second,
		ResponseHeaderTimeout: 65 * time.Second,
		MaxIdleConnsPerHost:   upstreamIdle,
		IdleConnTimeout:       90 * time.Second,
		// The Accept-Encoding of the client is forwarded.
		DisableCompression: true,
		WriteBufferSize:    8 << 10,
		ReadBufferSize:     32 << 10,
	}
}

package proxy

import (
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
// hub's own requests do.
func NewTransport(config *tls.Config, through func(*http.Request) (*url.URL, error)) *http.Transport {
	return &http.Transport{
		Proxy:                 through,
		TLSClientConfig:       config,
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
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

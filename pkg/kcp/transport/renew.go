package transport

import (
	"fmt"
	"net/http"
	"reflect"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// Connections sends requests on the connections of an HTTP transport that can be replaced. Requests
// that are open keep the connections that they have.
type Connections struct {
	now atomic.Pointer[http.Transport]
}

// NewConnections returns Connections of a transport.
func NewConnections(t *http.Transport) *Connections {
	c := &Connections{}
	c.now.Store(t)
	return c
}

// RoundTrip implements http.RoundTripper.
func (c *Connections) RoundTrip(r *http.Request) (*http.Response, error) {
	return c.now.Load().RoundTrip(r)
}

// Replace has new requests use another transport.
func (c *Connections) Replace(t *http.Transport) { c.now.Swap(t).CloseIdleConnections() }

// CloseIdleConnections closes connections without a request.
func (c *Connections) CloseIdleConnections() { c.now.Load().CloseIdleConnections() }

// identity is one identity at kcp, with its connections.
type identity struct {
	*Connections
	config *rest.Config
}

// Renew has new connections to kcp use the CA and the client certificate of a configuration that
// was read again. It replaces the CA of every identity, and the client certificate of t and of those
// with the same one. An identity without a certificate never gets one: kcp would take it for kcp's
// admin, whatever its token says. Nothing changes if it fails.
func (t *Transport) Renew(config *rest.Config) error {
	c := t.connections
	c.mu.Lock()
	defer c.mu.Unlock()
	old := t.wire.config.TLSClientConfig
	configs, renewed := make([]*rest.Config, len(c.all)), make([]*http.Transport, len(c.all))
	for i, id := range c.all {
		was := id.config.TLSClientConfig
		next := config.TLSClientConfig
		if id != t.wire && !sameCertificate(was, old) {
			next.CertFile, next.KeyFile, next.CertData, next.KeyData = was.CertFile, was.KeyFile, was.CertData, was.KeyData
		}
		configs[i] = rest.CopyConfig(id.config)
		configs[i].TLSClientConfig = next
		var err error
		if renewed[i], err = newTransport(configs[i], t.health); err != nil {
			return fmt.Errorf("make the HTTP client for kcp: %w", err)
		}
	}
	for i, id := range c.all {
		// Files can have another content under the same name.
		id.config = configs[i]
		id.Replace(renewed[i])
	}
	return nil
}

// sameCertificate reports whether both have one client certificate.
func sameCertificate(a, b rest.TLSClientConfig) bool {
	return (a.CertFile != "" || len(a.CertData) > 0) && a.CertFile == b.CertFile && a.KeyFile == b.KeyFile && reflect.DeepEqual(a.CertData, b.CertData) && reflect.DeepEqual(a.KeyData, b.KeyData)
}

package transport

import (
	"bytes"
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
// was read again. It replaces the CA of every identity with the same one, and the client certificate
// of t and of those with the same one. An identity without a certificate never gets one: kcp would
// take it for kcp's admin, whatever its token says. Nothing changes if it fails.
//
// client-go rereads certificates from files alone, and kcp's kubeconfig has them within. It also
// closes all connections, open watches included, when the client certificate changes.
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
		if id != t.wire && !sameCA(was, old) {
			next.CAFile, next.CAData, next.ServerName = was.CAFile, was.CAData, was.ServerName
		}
		var err error
		if configs[i], renewed[i], err = id.with(next, t.health); err != nil {
			return err
		}
	}
	for i, id := range c.all {
		// Files can have another content under the same name.
		id.config = configs[i]
		id.Replace(renewed[i])
	}
	return nil
}

// RenewOwn is Renew for t alone. It keeps the CA if the configuration has none.
func (t *Transport) RenewOwn(config *rest.Config) error {
	t.connections.mu.Lock()
	defer t.connections.mu.Unlock()
	tls, was := config.TLSClientConfig, t.wire.config.TLSClientConfig
	if len(tls.CAData) == 0 && tls.CAFile == "" {
		tls.CAFile, tls.CAData, tls.ServerName = was.CAFile, was.CAData, was.ServerName
	}
	next, renewed, err := t.wire.with(tls, t.health)
	if err != nil {
		return err
	}
	t.wire.config = next
	t.wire.Replace(renewed)
	return nil
}

// with returns the configuration of an identity with another CA and client certificate, and the
// HTTP transport for it.
func (id *identity) with(tls rest.TLSClientConfig, health *Health) (*rest.Config, *http.Transport, error) {
	config := rest.CopyConfig(id.config)
	config.TLSClientConfig = tls
	renewed, err := newTransport(config, health)
	if err != nil {
		return nil, nil, fmt.Errorf("make the HTTP client for kcp: %w", err)
	}
	return config, renewed, nil
}

// sameCA reports whether both verify servers by one CA.
func sameCA(a, b rest.TLSClientConfig) bool {
	return a.CAFile == b.CAFile && bytes.Equal(a.CAData, b.CAData)
}

// sameCertificate reports whether both have one client certificate.
func sameCertificate(a, b rest.TLSClientConfig) bool {
	return (a.CertFile != "" || len(a.CertData) > 0) && a.CertFile == b.CertFile && a.KeyFile == b.KeyFile && reflect.DeepEqual(a.CertData, b.CertData) && reflect.DeepEqual(a.KeyData, b.KeyData)
}

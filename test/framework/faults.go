package framework

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/faroshq/kedge-hub/pkg/certs"
)

// Faults is a proxy to a kcp that injects faults. With its Kubeconfig, every connection
// goes through the proxy, also to URLs that kcp publishes, and trusts the proxy's
// certificate.
type Faults struct {
	// KCP is the kcp with a kubeconfig that leads through the proxy.
	*KCP

	address   string
	forward   http.Handler
	connected *passed
	server    *http.Server

	mu       sync.Mutex
	listener net.Listener
	open     map[*faultyConn]struct{}
	// flows is a closed channel while data is forwarded, and an open one otherwise.
	flows     chan struct{}
	intercept func(w http.ResponseWriter, r *http.Request, forward http.Handler)
}

// NewFaults returns a proxy to kcp without faults.
func NewFaults(t testing.TB, kcp *KCP) *Faults {
	t.Helper()
	dir := t.TempDir()
	bundle, err := certs.Ensure(dir, []string{"127.0.0.1"}, time.Now())
	require.NoError(t, err)
	f := &Faults{open: map[*faultyConn]struct{}{}, flows: make(chan struct{}), connected: &passed{conns: make(chan net.Conn), done: make(chan struct{})}}
	close(f.flows)
	f.forwardTo(t, kcp)
	f.listen(t)

	raw, err := clientcmd.LoadFromFile(kcp.Kubeconfig)
	require.NoError(t, err)
	for _, cluster := range raw.Clusters {
		cluster.ProxyURL, cluster.CertificateAuthorityData, cluster.CertificateAuthority = "http://"+f.address, bundle.CAPEM, ""
	}
	own := *kcp
	own.shared = nil
	own.Kubeconfig = filepath.Join(dir, "admin.kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*raw, own.Kubeconfig))
	f.KCP = &own

	f.server = &http.Server{Handler: f, ReadHeaderTimeout: Long, TLSConfig: &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{bundle.Certificate}, NextProtos: []string{"h2", "http/1.1"},
	}}
	go func() { _ = f.server.ServeTLS(f.connected, "", "") }()
	t.Cleanup(func() {
		f.Restore(t)
		f.mu.Lock()
		_ = f.listener.Close()
		f.mu.Unlock()
		_ = f.server.Close()
		f.Cut()
	})
	return f
}

func (f *Faults) forwardTo(t testing.TB, kcp *KCP) {
	config := kcp.config(t)
	upstream, err := url.Parse(config.Host)
	require.NoError(t, err)
	verify, err := rest.TLSConfigFor(rest.AnonymousClientConfig(config))
	require.NoError(t, err)
	transport := &http.Transport{TLSClientConfig: verify, MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	f.forward = &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
		Transport: transport, FlushInterval: -1,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
}

// listen accepts connections. The address stays the same when Restore calls it again.
func (f *Faults) listen(t testing.TB) {
	address := f.address
	if address == "" {
		address = "127.0.0.1:0"
	}
	var l net.Listener
	Eventually(t, Long, func() (err error) {
		l, err = new(net.ListenConfig).Listen(context.Background(), "tcp", address)
		return err
	})
	f.listener, f.address = l, l.Addr().String()
	connect := &http.Server{ReadHeaderTimeout: Long, Handler: http.HandlerFunc(f.tunnel)}
	go func() { _ = connect.Serve(&faultyListener{l, f}) }()
}

// tunnel handles CONNECT and passes the connection to the TLS server.
func (f *Faults) tunnel(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "CONNECT only", http.StatusMethodNotAllowed)
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if _, err := fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		_ = conn.Close()
		return
	}
	_ = conn.SetDeadline(time.Time{})
	select {
	case f.connected.conns <- conn:
	case <-f.connected.done:
		_ = conn.Close()
	}
}

// ServeHTTP runs the intercepting handler, if any, or forwards the request.
func (f *Faults) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	intercept := f.intercept
	f.mu.Unlock()
	if intercept == nil {
		f.forward.ServeHTTP(w, r)
		return
	}
	intercept(w, r, f.forward)
}

// Intercept sets a handler that can fail requests or forward them; nil removes it. A
// handler that panics with http.ErrAbortHandler resets the connection.
func (f *Faults) Intercept(fault func(w http.ResponseWriter, r *http.Request, forward http.Handler)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.intercept = fault
}

// Refuse closes every connection and refuses new ones.
func (f *Faults) Refuse() {
	f.mu.Lock()
	_ = f.listener.Close()
	f.mu.Unlock()
	f.Cut()
}

// Cut closes every connection.
func (f *Faults) Cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.open {
		_ = c.Conn.Close()
	}
}

// Swallow stops forwarding data, but keeps connections open.
func (f *Faults) Swallow() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flows = make(chan struct{})
}

// Restore ends Refuse and Swallow.
func (f *Faults) Restore(t testing.TB) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.flows:
	default:
		close(f.flows)
	}
	if c, err := net.Dial("tcp", f.address); err == nil {
		_ = c.Close()
		return
	}
	f.listen(t)
}

func (f *Faults) flowing() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.flows
}

type faultyListener struct {
	net.Listener
	faults *Faults
}

func (l *faultyListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &faultyConn{Conn: conn, faults: l.faults}
	l.faults.mu.Lock()
	defer l.faults.mu.Unlock()
	l.faults.open[c] = struct{}{}
	return c, nil
}

// faultyConn blocks reads and writes while Swallow is in effect.
type faultyConn struct {
	net.Conn
	faults *Faults
}

func (c *faultyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	<-c.faults.flowing()
	return n, err
}

func (c *faultyConn) Write(b []byte) (int, error) {
	<-c.faults.flowing()
	return c.Conn.Write(b)
}

func (c *faultyConn) Close() error {
	c.faults.mu.Lock()
	delete(c.faults.open, c)
	c.faults.mu.Unlock()
	return c.Conn.Close()
}

// passed is a listener for connections that another server has accepted.
type passed struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *passed) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *passed) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *passed) Addr() net.Addr { return &net.TCPAddr{} }

package framework

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/contract"
)

// checked compares the calls of tests with the OpenAPI document. A call that differs fails, and
// is recorded for Undocumented: some tests expect calls to fail.
type checked struct {
	*http.Transport
	document *contract.Contract
}

// documented returns a transport that compares calls with the OpenAPI document. Outside of tests,
// as in the bench, it is the given one.
func documented(transport *http.Transport) http.RoundTripper {
	if !testing.Testing() {
		return transport
	}
	document, err := contract.Load()
	if err != nil {
		differences.add(err)
		return transport
	}
	return checked{transport, document}
}

// TransportOf returns the transport of a client of this package, which compares no calls.
func TransportOf(c *http.Client) *http.Transport {
	if compares, ok := c.Transport.(checked); ok {
		return compares.Transport
	}
	transport, _ := c.Transport.(*http.Transport)
	return transport
}

// Uncompared returns a client for calls that no document has, as an attacker sends them.
func (c *Client) Uncompared() *Client {
	plain := *c.HTTP
	plain.Transport = TransportOf(c.HTTP)
	return &Client{URL: c.URL, CA: c.CA, HTTP: &plain}
}

// RoundTrip implements http.RoundTripper.
func (c checked) RoundTrip(r *http.Request) (*http.Response, error) {
	// Dex is under /dex, and the Kubernetes API of a Workspace has answers without an end.
	if contract.Passes(r) || strings.HasPrefix(r.URL.Path, "/dex") {
		return c.Transport.RoundTrip(r)
	}
	sent, err := copyOf(r)
	if err != nil {
		return nil, err
	}
	response, err := c.Transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	if err := c.document.Check(contract.Exchange{
		Request: r, RequestBody: sent, Status: response.StatusCode, Header: response.Header, Body: body,
	}); err != nil {
		differences.add(err)
		return nil, err
	}
	return response, nil
}

// copyOf returns the body of a request, or nil for one that a test sends slowly or in part.
func copyOf(r *http.Request) ([]byte, error) {
	if r.GetBody == nil {
		return nil, nil
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	return io.ReadAll(body)
}

// recorded are the differences that were found in this process.
type recorded struct {
	mu   sync.Mutex
	errs []error
}

var differences recorded

func (r *recorded) add(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.ContainsFunc(r.errs, func(known error) bool { return known.Error() == err.Error() }) {
		r.errs = append(r.errs, err)
	}
}

// Undocumented returns how calls of this process differed from the OpenAPI document.
func Undocumented() error {
	differences.mu.Lock()
	defer differences.mu.Unlock()
	return errors.Join(differences.errs...)
}

// Documented returns the exit code for TestMain. It is not 0 if a call differed from the OpenAPI
// document, so that a test that expects failures cannot hide one.
func Documented(code int) int {
	if err := Undocumented(); err != nil {
		return failed(err)
	}
	return code
}

// Compared serves the hub once more on a port of this machine, with its certificate in the data
// directory dir, and compares the calls of programs there with the OpenAPI document. It returns
// its URL.
func (c *Client) Compared(t testing.TB, dir string, port int) string {
	t.Helper()
	hub, err := url.Parse(c.URL)
	require.NoError(t, err)
	certificate, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls", "tls.crt"), filepath.Join(dir, "tls", "tls.key"))
	require.NoError(t, err)
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	require.NoError(t, err)
	forward := &httputil.ReverseProxy{
		Transport: documented(TransportOf(c.HTTP)), FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(hub) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !contract.Passes(r) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
			r.Body, _ = r.GetBody()
		}
		forward.ServeHTTP(w, r)
	}))
	_ = server.Listener.Close()
	server.Listener, server.TLS = listener, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

package transport_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/faroshq/kedge-hub/pkg/certs"
)

func bundle(t *testing.T) *certs.Bundle {
	t.Helper()
	b, err := certs.Ensure(t.TempDir(), []string{"127.0.0.1"}, time.Now())
	require.NoError(t, err)
	return b
}

// kcp gets a certificate of another CA while a watch is open.
func TestRenew_usesTheNewCAAndKeepsOpenWatches(t *testing.T) {
	t.Parallel()
	old, next := bundle(t), bundle(t)
	var serving atomic.Pointer[tls.Certificate]
	serving.Store(&old.Certificate)
	events := make(chan string)
	kcp := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !r.URL.Query().Has("watch") {
			return
		}
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case <-r.Context().Done():
				return
			case e := <-events:
				_, _ = w.Write([]byte(e + "\n"))
				_ = http.NewResponseController(w).Flush()
			}
		}
	}))
	kcp.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return serving.Load(), nil }}
	kcp.EnableHTTP2 = true
	kcp.StartTLS()
	t.Cleanup(kcp.Close)
	// httptest prefers its own certificate to that of GetCertificate.
	kcp.TLS.Certificates = nil

	trusting := func(ca []byte) *rest.Config {
		return &rest.Config{Host: kcp.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
	}
	clients := newClients(t, trusting(old.CAPEM))
	other, err := clients.As(&rest.Config{BearerToken: "other"})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	get := func(c interface{ HTTP() (*http.Client, string) }, path string) (*http.Response, error) {
		client, host := c.HTTP()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, host+path, http.NoBody)
		require.NoError(t, err)
		return client.Do(r)
	}
	watch, err := get(clients, "/?watch")
	require.NoError(t, err)
	defer func() { _ = watch.Body.Close() }()

	serving.Store(&next.Certificate)
	require.Error(t, clients.Transport().Renew(trusting([]byte("no certificate"))))
	_, err = get(clients, "/")
	require.NoError(t, err, "a CA that cannot be used changes nothing")
	require.NoError(t, clients.Transport().Renew(trusting(next.CAPEM)))
	for _, c := range []interface{ HTTP() (*http.Client, string) }{clients, other} {
		answer, err := get(c, "/")
		require.NoError(t, err)
		_ = answer.Body.Close()
		signed, err := x509.ParseCertificate(next.Certificate.Certificate[0])
		require.NoError(t, err)
		require.True(t, signed.Equal(answer.TLS.PeerCertificates[0]))
	}
	events <- "still open"
	line, err := bufio.NewReader(watch.Body).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "still open\n", line)
}

// The kubeconfig of an admin with a token becomes one with a client certificate.
func TestRenew_givesNobodyElseTheCertificateOfTheAdmin(t *testing.T) {
	t.Parallel()
	serving := bundle(t)
	kcp := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) > 0 {
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	kcp.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{serving.Certificate}, ClientAuth: tls.RequestClientCert}
	kcp.StartTLS()
	t.Cleanup(kcp.Close)
	config := &rest.Config{Host: kcp.URL, BearerToken: "admin", TLSClientConfig: rest.TLSClientConfig{CAData: serving.CAPEM}}
	admin := newClients(t, config)
	anonymous, err := admin.Anonymous()
	require.NoError(t, err)

	crt, key, err := cert.GenerateSelfSignedCertKey("admin", nil, nil)
	require.NoError(t, err)
	next := &rest.Config{Host: kcp.URL, TLSClientConfig: rest.TLSClientConfig{CAData: serving.CAPEM, CertData: crt, KeyData: key}}
	for range 2 {
		require.NoError(t, admin.Transport().Renew(next))
		for c, want := range map[interface{ HTTP() (*http.Client, string) }]int{admin: http.StatusAccepted, anonymous: http.StatusOK} {
			client, host := c.HTTP()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, host+"/", http.NoBody)
			require.NoError(t, err)
			answer, err := client.Do(r)
			require.NoError(t, err)
			_ = answer.Body.Close()
			require.Equal(t, want, answer.StatusCode)
		}
	}
}

// A shard behind a front proxy has a certificate of another CA, and a credential of its own.
func TestRenew_isOfOneServer(t *testing.T) {
	t.Parallel()
	type server struct {
		*httptest.Server
		serving atomic.Pointer[tls.Certificate]
	}
	start := func(b *certs.Bundle) *server {
		s := &server{Server: httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if len(r.TLS.PeerCertificates) > 0 {
				w.WriteHeader(http.StatusAccepted)
			}
		}))}
		s.serving.Store(&b.Certificate)
		s.TLS = &tls.Config{
			MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.serving.Load(), nil },
		}
		s.StartTLS()
		t.Cleanup(s.Close)
		s.TLS.Certificates = nil
		return s
	}
	trusting := func(b *certs.Bundle) *rest.Config {
		return &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: b.CAPEM}}
	}
	ofFront, ofShard := bundle(t), bundle(t)
	front, shard := start(ofFront), start(ofShard)
	config := trusting(ofFront)
	config.Host = front.URL
	clients := newClients(t, config)
	admin, err := clients.As(trusting(ofShard))
	require.NoError(t, err)
	admin = admin.At(shard.URL)
	answers := func(c interface{ HTTP() (*http.Client, string) }) int {
		client, host := c.HTTP()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, host+"/", http.NoBody)
		require.NoError(t, err)
		answer, err := client.Do(r)
		require.NoError(t, err)
		_ = answer.Body.Close()
		return answer.StatusCode
	}

	next := bundle(t)
	front.serving.Store(&next.Certificate)
	require.NoError(t, clients.Transport().Renew(trusting(next)))
	require.Equal(t, []int{http.StatusOK, http.StatusOK}, []int{answers(clients), answers(admin)})

	next = bundle(t)
	shard.serving.Store(&next.Certificate)
	renewed := trusting(next)
	renewed.CertData, renewed.KeyData, err = cert.GenerateSelfSignedCertKey("admin", nil, nil)
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, admin.Transport().RenewOwn(renewed))
		require.Equal(t, []int{http.StatusOK, http.StatusAccepted}, []int{answers(clients), answers(admin)})
		renewed.CAData = nil
	}
}

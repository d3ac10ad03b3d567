package certs_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/certs"
)

// served returns the certificate that a client gets.
func served(t *testing.T, s *certs.Serving) *x509.Certificate {
	t.Helper()
	c, err := s.TLS().GetCertificate(&tls.ClientHelloInfo{})
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(c.Certificate[0])
	require.NoError(t, err)
	return leaf
}

func TestOwnCertificate_isRenewedWhileTheHubRuns(t *testing.T) {
	t.Parallel()
	k := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	s, err := certs.NewServing(certs.Options{Dir: t.TempDir(), ExternalURL: "https://127.0.0.1:9443", ListenAddress: "127.0.0.1:9443"}, k.Now())
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); s.Renew(ctx, k) }()
	defer func() { stop(); <-ended }()
	require.Eventually(t, k.HasWaiters, time.Minute, time.Millisecond)
	first, ca := served(t, s), s.CA()
	k.Step(200 * 24 * time.Hour)
	require.Never(t, func() bool { return !served(t, s).Equal(first) }, 50*time.Millisecond, time.Millisecond)
	k.Step(44 * 24 * time.Hour)
	require.Eventually(t, func() bool { return !served(t, s).Equal(first) }, time.Minute, time.Millisecond)
	require.Equal(t, ca, s.CA())
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	_, err = served(t, s).Verify(x509.VerifyOptions{Roots: roots, DNSName: "localhost", CurrentTime: k.Now()})
	require.NoError(t, err)
}

func TestServingCertificate_isVerifiedByItsCA(t *testing.T) {
	t.Parallel()
	s, err := certs.NewServing(certs.Options{Dir: t.TempDir(), ExternalURL: "https://127.0.0.1:9443", ListenAddress: "127.0.0.1:9443"}, time.Now())
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.False(t, s.VerifiedBy(roots, time.Now()))
	require.False(t, s.VerifiedBy(nil, time.Now()), "the system does not know it")
	roots.AppendCertsFromPEM(s.CA())
	require.True(t, s.VerifiedBy(roots, time.Now()))
}

func TestServingCertificate_isReplacedByItsFiles(t *testing.T) {
	t.Parallel()
	dir, next := t.TempDir(), t.TempDir()
	for _, at := range []string{dir, next} {
		_, err := certs.Ensure(at, []string{"localhost"}, time.Now())
		require.NoError(t, err)
	}
	s, err := certs.NewServing(certs.Options{
		CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key"), CAFile: filepath.Join(dir, "ca.crt"),
	}, time.Now())
	require.NoError(t, err)
	first := served(t, s)
	for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
		require.NoError(t, os.Rename(filepath.Join(next, name), filepath.Join(dir, name)))
		if err := s.Reload(); name == "tls.crt" {
			require.ErrorContains(t, err, "--tls-cert-file", "the key is that of the old certificate")
			require.True(t, served(t, s).Equal(first))
		}
	}
	require.False(t, served(t, s).Equal(first))
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	require.NoError(t, err)
	require.Equal(t, ca, s.CA(), "kubeconfigs get the new CA")
}

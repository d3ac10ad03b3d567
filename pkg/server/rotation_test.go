package server

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

// ownHub is a hub with a certificate of its own CA in dir, made at a time.
func ownHub(t *testing.T, dir string, at time.Time) *hub {
	t.Helper()
	o := NewOptions()
	o.DataDir = dir
	config, err := o.Complete()
	require.NoError(t, err)
	h := &hub{config: config}
	require.NoError(t, h.ownCertificate(at))
	return h
}

// served returns the certificate that a client gets.
func (h *hub) served(t *testing.T) *x509.Certificate {
	t.Helper()
	c, err := h.tls().GetCertificate(&tls.ClientHelloInfo{})
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(c.Certificate[0])
	require.NoError(t, err)
	return leaf
}

func TestOwnCertificate_isRenewedWhileTheHubRuns(t *testing.T) {
	t.Parallel()
	k := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	h := ownHub(t, t.TempDir(), k.Now())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); h.renewCertificate(ctx, k) }()
	defer func() { stop(); <-ended }()
	require.Eventually(t, k.HasWaiters, time.Minute, time.Millisecond)
	first, ca := h.served(t), h.clientCA()
	k.Step(200 * 24 * time.Hour)
	require.Never(t, func() bool { return !h.served(t).Equal(first) }, 50*time.Millisecond, time.Millisecond)
	k.Step(44 * 24 * time.Hour)
	require.Eventually(t, func() bool { return !h.served(t).Equal(first) }, time.Minute, time.Millisecond)
	require.Equal(t, ca, h.clientCA())
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	_, err := h.served(t).Verify(x509.VerifyOptions{Roots: roots, DNSName: "localhost", CurrentTime: k.Now()})
	require.NoError(t, err)
}

func TestServingCertificate_isReplacedByItsFiles(t *testing.T) {
	t.Parallel()
	dir, next := t.TempDir(), t.TempDir()
	for _, at := range []string{dir, next} {
		_, err := certs.Ensure(at, []string{"localhost"}, time.Now())
		require.NoError(t, err)
	}
	o := NewOptions()
	o.TLSCertFile, o.TLSKeyFile, o.TLSCAFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt")
	config, err := o.Complete()
	require.NoError(t, err)
	h := &hub{config: config}
	require.NoError(t, h.certificate())
	first := h.served(t)
	for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
		require.NoError(t, os.Rename(filepath.Join(next, name), filepath.Join(dir, name)))
		if err := h.certificate(); name == "tls.crt" {
			require.ErrorContains(t, err, "--tls-cert-file", "the key is that of the old certificate")
			require.True(t, h.served(t).Equal(first))
		}
	}
	require.False(t, h.served(t).Equal(first))
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	require.NoError(t, err)
	require.Equal(t, ca, h.clientCA(), "kubeconfigs get the new CA")
}

package certs_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/certs"
)

// thief has the key of the CA in a directory.
type thief struct {
	ca  *x509.Certificate
	key any
}

func steal(t *testing.T, dir string) thief {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key"))
	require.NoError(t, err)
	return thief{ca: pair.Leaf, key: pair.PrivateKey}
}

// sign makes a serving certificate for a host, signed with the stolen key.
func (s thief) sign(t *testing.T, host string) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), Subject: pkix.Name{CommonName: "stolen"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, s.ca, key.Public(), s.key)
	require.NoError(t, err)
	c, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return c
}

// believes reports whether Go and, where it is installed, OpenSSL verify a certificate by the CA.
func believes(t *testing.T, caPEM []byte, c *x509.Certificate, host string) bool {
	t.Helper()
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(caPEM))
	_, err := c.Verify(x509.VerifyOptions{Roots: pool, DNSName: host, CurrentTime: now})
	openssl, missing := exec.LookPath("openssl")
	if missing != nil {
		return err == nil
	}
	dir := t.TempDir()
	ca, cert := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "tls.crt")
	require.NoError(t, os.WriteFile(ca, caPEM, 0o600))
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}), 0o600))
	out, other := exec.CommandContext(t.Context(), openssl, "verify", "-x509_strict", "-no_check_time", "-CAfile", ca, cert).CombinedOutput()
	require.Equal(t, err == nil, other == nil, "%s: Go says %v, OpenSSL %s", host, err, out)
	return err == nil
}

// A stolen key of the CA, which people put into kubeconfigs and browsers, makes no certificate of
// another site.
func TestCA_isBelievedForTheHubAlone(t *testing.T) {
	t.Parallel()
	hosts := []string{"localhost", "127.0.0.1", "::1", "hub.example.com", "192.0.2.7"}
	for name, own := range map[string][]string{"both": hosts, "names": {"hub.example.com", "localhost"}, "addresses": {"127.0.0.1", "::1"}} {
		dir := t.TempDir()
		b, err := certs.Ensure(dir, own, now)
		require.NoError(t, err)
		stolen := steal(t, dir)
		require.True(t, stolen.ca.PermittedDNSDomainsCritical)
		for _, host := range own {
			require.NoError(t, verify(t, b, host, now), "%s: %s", name, host)
			require.True(t, believes(t, b.CAPEM, stolen.sign(t, host), host), "%s: the control: %s", name, host)
		}
		for _, host := range []string{"bank.example", "example.com", "evilhub.example.com", "192.0.2.8", "127.0.0.2", "2001:db8::1", "10.0.0.1"} {
			require.False(t, believes(t, b.CAPEM, stolen.sign(t, host), host), "%s: %s", name, host)
		}
	}
}

// After a change of --external-url clients need the new CA certificate.
func TestCA_ofAnotherHostIsReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := certs.Ensure(dir, []string{"localhost", "one.example.com"}, now)
	require.NoError(t, err)
	moved, err := certs.Ensure(dir, []string{"localhost", "two.example.com"}, now)
	require.NoError(t, err)
	require.NoError(t, verify(t, moved, "two.example.com", now))
	require.Error(t, verify(t, &certs.Bundle{CAPEM: first.CAPEM, Certificate: moved.Certificate}, "two.example.com", now))
	again, err := certs.Ensure(dir, []string{"two.example.com", "localhost"}, now)
	require.NoError(t, err)
	require.Equal(t, moved.CAPEM, again.CAPEM)
}

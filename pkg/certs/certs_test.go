package certs_test

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/certs"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func leaf(t *testing.T, b *certs.Bundle) *x509.Certificate {
	t.Helper()
	c, err := x509.ParseCertificate(b.Certificate.Certificate[0])
	require.NoError(t, err)
	return c
}

func verify(t *testing.T, b *certs.Bundle, host string, at time.Time) error {
	t.Helper()
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(b.CAPEM))
	_, err := leaf(t, b).Verify(x509.VerifyOptions{Roots: pool, DNSName: host, CurrentTime: at})
	return err
}

func TestEnsure_isValidForItsHostsOnly(t *testing.T) {
	t.Parallel()
	b, err := certs.Ensure(filepath.Join(t.TempDir(), "tls"), []string{"localhost", "127.0.0.1", "::1", "hub.example.com"}, now)
	require.NoError(t, err)
	for _, host := range []string{"localhost", "127.0.0.1", "::1", "hub.example.com"} {
		require.NoError(t, verify(t, b, host, now), host)
	}
	require.Error(t, verify(t, b, "evil.example.com", now))
}

func TestEnsure_keepsAndRenews(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ensure := func(at time.Time, hosts ...string) *certs.Bundle {
		b, err := certs.Ensure(dir, hosts, at)
		require.NoError(t, err)
		return b
	}
	first := ensure(now, "localhost", "127.0.0.1")
	same := ensure(now.Add(time.Hour), "127.0.0.1", "localhost", "localhost")
	require.Equal(t, leaf(t, first).SerialNumber, leaf(t, same).SerialNumber)
	moved := ensure(now, "127.0.0.1", "other.example.com")
	require.NotEqual(t, leaf(t, first).SerialNumber, leaf(t, moved).SerialNumber)
	require.NotEqual(t, first.CAPEM, moved.CAPEM, "the old CA certificate does not permit the new name")
	fewer := ensure(now, "127.0.0.1")
	require.NotEqual(t, leaf(t, moved).SerialNumber, leaf(t, fewer).SerialNumber)
	require.Equal(t, moved.CAPEM, fewer.CAPEM, "clients keep trusting the CA")
	moved = ensure(now, "127.0.0.1", "other.example.com")
	later := now.Add(350 * 24 * time.Hour)
	renewed := ensure(later, "127.0.0.1", "other.example.com")
	require.NotEqual(t, leaf(t, moved).SerialNumber, leaf(t, renewed).SerialNumber)
	require.NoError(t, verify(t, renewed, "other.example.com", later.Add(300*24*time.Hour)))
	for _, key := range []string{"ca.key", "tls.key"} {
		info, err := os.Stat(filepath.Join(dir, key))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), key)
	}
}

func TestEnsure_renewsAtTwoThirdsOfTheLife(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ensure := func(at time.Time) *certs.Bundle {
		b, err := certs.Ensure(dir, []string{"localhost"}, at)
		require.NoError(t, err)
		return b
	}
	first := ensure(now)
	const day = 24 * time.Hour
	require.Equal(t, first.Certificate.Certificate, ensure(now.Add(243*day)).Certificate.Certificate)
	second := ensure(now.Add(244 * day))
	require.NotEqual(t, first.Certificate.Certificate, second.Certificate.Certificate)
	require.Equal(t, first.CAPEM, second.CAPEM)
}

// Clients keep the certificate of the CA in their kubeconfigs for years.
func TestEnsure_clientsOfTheOldCATrustTheNewOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := certs.Ensure(dir, []string{"localhost"}, now)
	require.NoError(t, err)
	later := now.Add(7 * 365 * 24 * time.Hour)
	renewed, err := certs.Ensure(dir, []string{"localhost"}, later)
	require.NoError(t, err)
	require.NotEqual(t, first.CAPEM, renewed.CAPEM)
	require.NoError(t, verify(t, renewed, "localhost", later))
	require.NoError(t, verify(t, &certs.Bundle{CAPEM: first.CAPEM, Certificate: renewed.Certificate}, "localhost", later))
	other, err := certs.Ensure(t.TempDir(), []string{"localhost"}, now)
	require.NoError(t, err)
	require.Error(t, verify(t, &certs.Bundle{CAPEM: other.CAPEM, Certificate: renewed.Certificate}, "localhost", later))
}

// A crash between the writes of a pair, or a removed file, is repaired at the next start.
func TestEnsure_replacesAnIncompletePair(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := certs.Ensure(dir, []string{"localhost"}, now)
	require.NoError(t, err)
	caKey, err := os.ReadFile(filepath.Join(dir, "ca.key"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.key"), caKey, 0o600))
	b, err := certs.Ensure(dir, []string{"localhost"}, now)
	require.NoError(t, err)
	require.NoError(t, verify(t, b, "localhost", now))
	require.NoError(t, os.Remove(filepath.Join(dir, "ca.key")))
	b, err = certs.Ensure(dir, []string{"localhost"}, now)
	require.NoError(t, err)
	require.NoError(t, verify(t, b, "localhost", now))
}

func TestLoad_namesTheFlag(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := certs.Ensure(dir, []string{"localhost"}, now)
	require.NoError(t, err)
	file := func(name string) string { return filepath.Join(dir, name) }
	_, err = certs.Load(file("tls.crt"), file("tls.key"), file("ca.crt"))
	require.NoError(t, err)
	_, err = certs.Load(file("tls.crt"), file("ca.key"), file("ca.crt"))
	require.ErrorContains(t, err, "--tls-cert-file")
	_, err = certs.Load(file("tls.crt"), file("tls.key"), file("tls.key"))
	require.ErrorContains(t, err, "--tls-ca-file")
}

func TestHosts_listenAddressIsOneIfItIsAnIP(t *testing.T) {
	t.Parallel()
	for listen, own := range map[string][]string{
		"192.0.2.7:9443": {"192.0.2.7"}, "0.0.0.0:9443": nil, "[::]:9443": nil, ":9443": nil, "hub:9443": nil,
	} {
		hosts, err := certs.Hosts("https://hub.example.com:8443", listen)
		require.NoError(t, err)
		require.Equal(t, append([]string{"localhost", "127.0.0.1", "::1", "hub.example.com"}, own...), hosts, listen)
	}
	_, err := certs.Hosts("https://[", "127.0.0.1:9443")
	require.Error(t, err)
}

package chart

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// secretOf returns the Secret with the certificate, as the objects of a cluster have it and with its type.
func secretOf(t *testing.T, objects map[string][]byte) (*unstructured.Unstructured, corev1.Secret) {
	t.Helper()
	var stored unstructured.Unstructured
	require.NoError(t, yaml.Unmarshal(objects["Secret/prod-kedge-hub-tls"], &stored.Object))
	var secret corev1.Secret
	require.NoError(t, yaml.UnmarshalStrict(objects["Secret/prod-kedge-hub-tls"], &secret))
	return &stored, secret
}

// requireValid checks the certificate as a client that trusts the CA in the Secret and opens a host.
func requireValid(t *testing.T, secret corev1.Secret, host string) {
	t.Helper()
	block, _ := pem.Decode(secret.Data["tls.crt"])
	require.NotNil(t, block)
	certificate, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(secret.Data["ca.crt"]))
	for _, name := range []string{host, "prod-kedge-hub.kedge.svc"} {
		_, err = certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: name})
		require.NoError(t, err, name)
	}
}

// A certificate that Helm made is kept while it is valid for the host of the URL. An old one is without the annotation
// with the host; an address was a DNS name in it.
func TestChart_makesACertificateForAnotherHost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after string
		old, kept     bool
	}{
		"the same host":               {before: "hub.example.com", after: "hub.example.com", kept: true},
		"another port":                {before: "hub.example.com", after: "hub.example.com:8443", kept: true},
		"another host":                {before: "hub.example.com", after: "kedge.example.com"},
		"a part of the host":          {before: "hub.example.com", after: "example.com"},
		"an address":                  {before: "hub.example.com", after: "192.0.2.7:8443"},
		"the same address":            {before: "192.0.2.7", after: "192.0.2.7", kept: true},
		"another address":             {before: "192.0.2.7", after: "192.0.2.8"},
		"an address of IPv6":          {before: "192.0.2.7", after: "[2001:db8::7]:8443"},
		"the same address of IPv6":    {before: "[2001:db8::7]", after: "[2001:db8::7]:8443", kept: true},
		"an old one":                  {before: "hub.example.com", after: "hub.example.com", old: true, kept: true},
		"an old one of another host":  {before: "hub.example.com", after: "kedge.example.com", old: true},
		"an old one of a longer host": {before: "hub.example.com", after: "example.com", old: true},
		"an old one of an address":    {before: "192.0.2.7", after: "192.0.2.7", old: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects, _, err := render("externalURL: 'https://" + c.before + "'\n")
			require.NoError(t, err)
			stored, before := secretOf(t, objects)
			if c.old {
				unstructured.RemoveNestedField(stored.Object, "metadata", "annotations", "kedge.faros.sh/host")
			}
			in := cluster{objects: map[string]*unstructured.Unstructured{"Secret": stored}}
			objects, _, err = in.render("externalURL: 'https://" + c.after + "'\n")
			require.NoError(t, err)
			stored, after := secretOf(t, objects)
			if c.kept {
				require.Equal(t, before.Data, after.Data)
			} else {
				require.NotEqual(t, before.Data["tls.key"], after.Data["tls.key"])
			}
			opened, err := url.Parse("https://" + c.after)
			require.NoError(t, err)
			requireValid(t, after, opened.Hostname())
			require.Equal(t, opened.Hostname(), stored.GetAnnotations()["kedge.faros.sh/host"])
		})
	}
}

// The chart replaces no certificate of the operator's own, also where its names do not say that it is valid for the host.
func TestChart_keepsACertificateThatItDidNotMake(t *testing.T) {
	t.Parallel()
	objects, _, err := render(embedded)
	require.NoError(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	wildcard := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"*.example.com"}}
	company := &x509.Certificate{Subject: pkix.Name{CommonName: "a company"}}
	der, err := x509.CreateCertificate(rand.Reader, wildcard, company, key.Public(), key)
	require.NoError(t, err)
	own := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	for name, crt := range map[string]string{"one": own, "a chain": own + own, "no PEM": "-", "nothing": ""} {
		for _, annotation := range []string{"", "kedge.example.com"} {
			stored, _ := secretOf(t, objects)
			stored.SetAnnotations(map[string]string{"kedge.faros.sh/host": annotation})
			data := map[string]any{"tls.crt": base64.StdEncoding.EncodeToString([]byte(crt)), "tls.key": "aGlz"}
			stored.Object["data"] = data
			rendered, _, err := cluster{objects: map[string]*unstructured.Unstructured{"Secret": stored}}.render(embedded)
			require.NoError(t, err, name)
			after, _ := secretOf(t, rendered)
			require.Equal(t, data, after.Object["data"], name)
		}
	}
}

// In a Certificate of cert-manager an address is none of the DNS names.
func TestChart_asksCertManagerForAnAddress(t *testing.T) {
	t.Parallel()
	const issued = "tls: {mode: certManager, certManager: {issuerRef: {name: internal}}}\n"
	service := []string{"prod-kedge-hub", "prod-kedge-hub.kedge", "prod-kedge-hub.kedge.svc"}
	for host, want := range map[string]struct{ names, addresses []string }{
		"hub.example.com":  {names: append([]string{"hub.example.com"}, service...)},
		"192.0.2.7:8443":   {names: service, addresses: []string{"192.0.2.7"}},
		"[2001:db8::7]:80": {names: service, addresses: []string{"2001:db8::7"}},
	} {
		objects, _, err := render("externalURL: 'https://" + host + "'\n" + issued)
		require.NoError(t, err, host)
		var certificate struct {
			Spec struct{ DNSNames, IPAddresses []string }
		}
		require.NoError(t, yaml.Unmarshal(objects["Certificate/prod-kedge-hub"], &certificate))
		require.Equal(t, want.names, certificate.Spec.DNSNames, host)
		require.Equal(t, want.addresses, certificate.Spec.IPAddresses, host)
	}
}

package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/faroshq/kedge-hub/pkg/durable"
)

const (
	// caLife and leafLife are the validity of the CA and of the serving certificate.
	caLife   = 10 * 365 * 24 * time.Hour
	leafLife = 365 * 24 * time.Hour
)

// Bundle is the serving certificate of the hub and the CA that clients trust.
type Bundle struct {
	CAPEM       []byte
	Certificate tls.Certificate
}

// Load reads the certificate, key and CA given by flags. Errors name the flag.
func Load(certFile, keyFile, caFile string) (*Bundle, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert-file, --tls-key-file: %w", err)
	}
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("--tls-ca-file: %w", err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("--tls-ca-file: %s holds no PEM certificate", caFile)
	}
	return &Bundle{CAPEM: ca, Certificate: pair}, nil
}

// Hosts returns the names and addresses under which clients reach the hub: loopback, the host of
// the external URL, and the listen address if it is one IP address.
func Hosts(externalURL, listenAddress string) ([]string, error) {
	external, err := url.Parse(externalURL)
	if err != nil {
		return nil, err
	}
	hosts := []string{"localhost", "127.0.0.1", "::1"}
	if host := strings.TrimSuffix(external.Hostname(), "."); host != "" {
		hosts = append(hosts, host)
	}
	if listen, _, err := net.SplitHostPort(listenAddress); err == nil {
		if ip := net.ParseIP(listen); ip != nil && !ip.IsUnspecified() {
			hosts = append(hosts, ip.String())
		}
	}
	return hosts, nil
}

// Ensure returns the certificate for hosts (DNS names and IP addresses) in dir: tls.crt and
// tls.key, signed by the CA in ca.crt and ca.key. It creates or replaces a pair that is
// missing, has lived two thirds of its life or is for other hosts. A new certificate of the CA
// has the key and the name of the old one, so that clients that trust the old one trust what it
// signs.
//
// The CA has critical name constraints, so that clients accept its certificates for the hub's hosts
// only. A certificate of the CA that does not permit all hosts is replaced, and clients need the
// new one.
func Ensure(dir string, hosts []string, now time.Time) (*Bundle, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the certificate directory: %w", err)
	}
	hosts = slices.Compact(slices.Sorted(slices.Values(hosts)))
	names, addresses := split(hosts)
	ca, err := ensurePair(dir, "ca", func(c *x509.Certificate) bool {
		return c.IsCA && valid(c, now) && permits(c, names, addresses)
	}, func(old *Pair) (*Pair, error) {
		template := &x509.Certificate{
			Subject: pkix.Name{CommonName: "kedge-hub CA"}, NotAfter: now.Add(caLife),
			IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
			KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		}
		constrain(template, names, addresses)
		if old != nil && old.cert.IsCA {
			template.Subject = old.cert.Subject
			return signed(template, old.key, nil, now)
		}
		return NewPair(template, nil, now)
	})
	if err != nil {
		return nil, err
	}
	leaf, err := ensurePair(dir, "tls", func(c *x509.Certificate) bool {
		return valid(c, now) && c.CheckSignatureFrom(ca.cert) == nil && slices.Equal(hostsOf(c), hosts)
	}, func(*Pair) (*Pair, error) {
		template := &x509.Certificate{
			Subject: pkix.Name{CommonName: "kedge-hub"}, NotAfter: now.Add(leafLife),
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
			BasicConstraintsValid: true, DNSNames: names, IPAddresses: addresses,
		}
		return NewPair(template, ca, now)
	})
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(append(slices.Clone(leaf.CertPEM), ca.CertPEM...), leaf.KeyPEM)
	if err != nil {
		return nil, fmt.Errorf("read the serving certificate: %w", err)
	}
	return &Bundle{CAPEM: ca.CertPEM, Certificate: certificate}, nil
}

// valid reports whether a certificate is in the first two thirds of its life.
func valid(c *x509.Certificate, now time.Time) bool {
	return now.After(c.NotBefore) && now.Before(c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore)/3*2))
}

func hostsOf(c *x509.Certificate) []string {
	hosts := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	return slices.Sorted(slices.Values(hosts))
}

// Pair is a certificate and its key.
type Pair struct {
	cert            *x509.Certificate
	key             *ecdsa.PrivateKey
	CertPEM, KeyPEM []byte
}

func ensurePair(dir, name string, good func(*x509.Certificate) bool, create func(old *Pair) (*Pair, error)) (*Pair, error) {
	certFile, keyFile := filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	existing, err := readPair(certFile, keyFile)
	switch {
	case err == nil && good(existing.cert):
		return existing, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w; remove %s and %s to let the hub create new ones", err, certFile, keyFile)
	}
	created, err := create(existing)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", certFile, err)
	}
	// The key is written first, so that a crash leaves no certificate without its key.
	if err := durable.Replace(keyFile, created.KeyPEM, 0o600); err != nil {
		return nil, err
	}
	return created, durable.Replace(certFile, created.CertPEM, 0o644)
}

func readPair(certFile, keyFile string) (*Pair, error) {
	certPEM, err := os.ReadFile(certFile)
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, err
	}
	both, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		// A crash between the two writes leaves a pair that does not match. It is
		// replaced, as if it were missing.
		return nil, fmt.Errorf("%s and %s do not match: %w", certFile, keyFile, fs.ErrNotExist)
	}
	key, ok := both.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s is not an ECDSA key", keyFile)
	}
	return &Pair{cert: both.Leaf, key: key, CertPEM: certPEM, KeyPEM: keyPEM}, nil
}

// NewPair makes a P-256 key and a certificate for it, signed by ca, or by itself if ca is nil. The certificate is valid
// from an hour before now, and has a random serial number.
func NewPair(template *x509.Certificate, ca *Pair, now time.Time) (*Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return signed(template, key, ca, now)
}

// signed returns a certificate of key, signed by ca, or by itself if ca is nil.
func signed(template *x509.Certificate, key *ecdsa.PrivateKey, ca *Pair, now time.Time) (*Pair, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore = now.Add(-time.Hour)
	parent, signer := template, key
	if ca != nil {
		parent, signer = ca.cert, ca.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return &Pair{
		cert: cert, key: key,
		CertPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		KeyPEM:  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	}, nil
}

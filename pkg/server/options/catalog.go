package options

import (
	"cmp"
	"crypto/x509"
	"net"
	"net/netip"
	"net/url"
	"os"

	"github.com/spf13/pflag"

	"github.com/faroshq/kedge-hub/pkg/backend"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// CatalogOptions are the flags of the catalog.
type CatalogOptions struct {
	// AllowPrivateBackends (--allow-private-backends) permits catalog entries whose backend.url
	// has a private or a loopback address. Link-local addresses are never permitted. Default
	// false.
	AllowPrivateBackends bool
	// BackendCAFile (--backend-ca-file) is a PEM file with CA certificates that the servers of
	// providers are verified by, beside those of the system. Empty means none.
	BackendCAFile string
}

func (o *CatalogOptions) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.AllowPrivateBackends, "allow-private-backends", o.AllowPrivateBackends, "Accept catalog entries whose backend.url leads to a private or loopback address, and probe those servers. People who may publish an entry can then learn which of these addresses answer.")
	fs.StringVar(&o.BackendCAFile, "backend-ca-file", o.BackendCAFile, "PEM file with CA certificates that the servers of providers (backend.url) are verified by, beside those of the system.")
}

// complete validates the flags and returns the roots; nil means those of the system.
func (o *CatalogOptions) complete(fail func(flag, format string, args ...any)) *x509.CertPool {
	return rootsWith("backend-ca-file", o.BackendCAFile, fail)
}

// rootsWith returns the CA certificates of the system and those of the file of a flag; nil without a file.
func rootsWith(flag, file string, fail func(flag, format string, args ...any)) *x509.CertPool {
	if file == "" {
		return nil
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		fail(flag, "the CA certificates of the system cannot be read: %v", err)
		return nil
	}
	if raw, err := os.ReadFile(file); err != nil || !roots.AppendCertsFromPEM(raw) {
		fail(flag, "%q is not a readable PEM file with certificates", file)
	}
	return roots
}

// BackendProber returns what asks the servers of providers whether they are there.
func (c Config) BackendProber() *backend.Prober {
	return backend.New(backend.Config{
		Roots: c.backendRoots, Own: c.ownEndpoints(),
		Allowed: func(to netip.AddrPort, own []netip.AddrPort) bool {
			return tenancy.CheckBackendTarget(to, own, c.Catalog.AllowPrivateBackends)
		},
	})
}

// ownEndpoints are the hosts and ports at which the hub and the OIDC issuer are reached.
func (c Config) ownEndpoints() []string {
	own := []string{c.ListenAddress}
	if c.MetricsListenAddress != "" {
		own = append(own, c.MetricsListenAddress)
	}
	for _, raw := range []string{c.ExternalURL, c.OIDC.IssuerURL} {
		if u, err := url.Parse(raw); err == nil && u.Host != "" {
			own = append(own, net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443")))
		}
	}
	return own
}

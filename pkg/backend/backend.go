package backend

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

const (
	// timeout limits a probe, from the resolution of the name to the header of the answer.
	timeout = 5 * time.Second
	// maxHeader is the maximum size of the header of an answer, in bytes.
	maxHeader = 64 << 10
	// maxAddresses is the maximum number of addresses that a probe tries.
	maxAddresses = 4
)

// Config is what a Prober needs.
type Config struct {
	// Allowed reports whether the hub may connect to an address.
	Allowed func(netip.Addr) bool
	// Roots are the CAs that servers are verified by; nil means those of the system.
	Roots *x509.CertPool
	// Resolve returns the addresses of a name; nil means the resolver of the system.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to an address and port; nil means TCP.
	Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

// Prober asks servers whether they are there.
type Prober struct {
	config Config
	client *http.Client
}

// New returns a Prober.
func New(c Config) *Prober {
	if c.Resolve == nil {
		c.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if c.Dial == nil {
		c.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", to.String())
		}
	}
	p := &Prober{config: c}
	p.client = &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			DialContext:            p.dial,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.Roots},
			ForceAttemptHTTP2:      true,
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeader,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return p
}

// Probe sends a HEAD request to a URL. It returns the empty string if the server answers, with
// whatever status, and otherwise tells people why it does not.
func (p *Prober) Probe(ctx context.Context, raw string) (problem string) {
	const noURL = "backend.url is not a URL that begins with https://"
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return noURL
	}
	// net/http would send a user of the URL as a credential.
	u.User, u.Fragment = nil, ""
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, u.String(), http.NoBody)
	if err != nil {
		return noURL
	}
	request.Header.Set("User-Agent", "kedge-hub")
	response, err := p.client.Do(request)
	if err != nil {
		return explain(err)
	}
	_ = response.Body.Close()
	return ""
}

// dial connects to one of the addresses of a name. It refuses the name if the hub may not
// connect to any one of them.
func (p *Prober) dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	number, err := net.DefaultResolver.LookupPort(ctx, "tcp", port)
	if err != nil {
		return nil, err
	}
	addresses, err := p.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	var last error
	for _, a := range addresses[:min(len(addresses), maxAddresses)] {
		conn, err := p.config.Dial(ctx, netip.AddrPortFrom(a, uint16(number))) //nolint:gosec // a port
		if err == nil {
			return conn, nil
		}
		last = err
	}
	return nil, last
}

// resolve returns the addresses of a host, all of which the hub may connect to.
func (p *Prober) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	addresses := []netip.Addr{}
	if literal, err := netip.ParseAddr(host); err == nil {
		addresses = append(addresses, literal)
	} else if addresses, err = p.config.Resolve(ctx, host); err != nil {
		return nil, err
	}
	if len(addresses) == 0 {
		return nil, &net.DNSError{Err: "no addresses", Name: host, IsNotFound: true}
	}
	for i, a := range addresses {
		if !p.config.Allowed(a) {
			return nil, errRefused
		}
		addresses[i] = a.Unmap()
	}
	return addresses, nil
}

// errRefused is returned for a name with an address that the hub does not connect to. It does
// not tell the address: the name may be one that only the hub can resolve.
var errRefused = errors.New("the host has an address that the hub does not connect to")

// explain turns an error of net/http into a sentence for people. It tells the kind of the
// failure only, so that nobody learns of the hub's network from it.
func explain(err error) string {
	reason := "the connection failed"
	var (
		dns         *net.DNSError
		certificate *tls.CertificateVerificationError
		timed       net.Error
		header      tls.RecordHeaderError
		operation   *net.OpError
	)
	switch {
	case errors.Is(err, errRefused):
		reason = "its host has an address that the hub does not connect to, such as a private or a loopback one"
	case errors.As(err, &dns) && dns.IsNotFound:
		reason = "its host has no address"
	case errors.As(err, &dns):
		reason = "the address of its host could not be found out"
	case errors.As(err, &certificate):
		reason = "its certificate is not valid for the hub: " + certificateProblem(certificate)
	case errors.As(err, &header), errors.Is(err, http.ErrSchemeMismatch):
		reason = "it does not speak TLS"
	case errors.As(err, &timed) && timed.Timeout():
		reason = fmt.Sprintf("it did not answer within %s", timeout)
	case errors.As(err, &operation) && operation.Op == "dial":
		reason = "it accepts no connection"
	case strings.Contains(err.Error(), "malformed HTTP"):
		reason = "its answer is not HTTP"
	}
	return "the server of the provider is not reachable: " + reason
}

func certificateProblem(err *tls.CertificateVerificationError) string {
	var (
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &authority):
		return "its CA is not known"
	case errors.As(err, &hostname):
		return "it is for another host"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "it has expired or is not valid yet"
	}
	return "it cannot be verified"
}

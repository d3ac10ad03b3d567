package backend

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
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
	// Allowed reports whether the hub may connect to an address and port. own are those of Own.
	Allowed func(to netip.AddrPort, own []netip.AddrPort) bool
	// Own are the hosts and ports at which the hub itself and its identity provider are reached, as
	// host:port. A host that is empty or unspecified stands for all interfaces.
	Own []string
	// Roots are the CAs that servers are verified by; nil means those of the system.
	Roots *x509.CertPool
	// Resolve returns the addresses of a name; nil means the resolver of the system.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Interfaces returns the addresses of this host; nil means those of its network interfaces.
	Interfaces func() []netip.Addr
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
	if c.Interfaces == nil {
		c.Interfaces = interfaces
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

// Probe sends a HEAD request to a URL. It returns nil if the server answers, with whatever status.
// The error is for the log: publishers learn nothing of the hub's network and of other people's hosts
// if they are told the same of every failure.
func (p *Prober) Probe(ctx context.Context, raw string) error {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return errors.New("backend.url is not a URL that begins with https://")
	}
	// net/http would send a user of the URL as a credential.
	u.User, u.Fragment = nil, ""
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, u.String(), http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", "kedge-hub")
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	return nil
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
	targets, err := p.resolve(ctx, host, uint16(number)) //nolint:gosec // a port
	if err != nil {
		return nil, err
	}
	var last error
	for _, to := range targets[:min(len(targets), maxAddresses)] {
		conn, err := p.config.Dial(ctx, to)
		if err == nil {
			return conn, nil
		}
		last = err
	}
	return nil, last
}

// resolve returns the addresses of a host with the port, all of which the hub may connect to.
func (p *Prober) resolve(ctx context.Context, host string, port uint16) ([]netip.AddrPort, error) {
	addresses := []netip.Addr{}
	if literal, err := netip.ParseAddr(host); err == nil {
		addresses = append(addresses, literal)
	} else if addresses, err = p.config.Resolve(ctx, host); err != nil {
		return nil, err
	}
	if len(addresses) == 0 {
		return nil, &net.DNSError{Err: "no addresses", Name: host, IsNotFound: true}
	}
	own := p.ownAddresses(ctx)
	targets := make([]netip.AddrPort, len(addresses))
	for i, a := range addresses {
		targets[i] = netip.AddrPortFrom(a.Unmap(), port)
		if !p.config.Allowed(targets[i], own) {
			return nil, errRefused
		}
	}
	return targets, nil
}

// ownAddresses returns the addresses and ports of the hub itself. A name that has none is left out:
// nobody reaches the hub by it.
func (p *Prober) ownAddresses(ctx context.Context) (own []netip.AddrPort) {
	for _, endpoint := range p.config.Own {
		host, raw, err := net.SplitHostPort(endpoint)
		port, bad := strconv.ParseUint(raw, 10, 16)
		if err != nil || bad != nil {
			continue
		}
		var found []netip.Addr
		switch literal, err := netip.ParseAddr(host); {
		case host == "", err == nil && literal.IsUnspecified():
			found = p.config.Interfaces()
		case err == nil:
			found = []netip.Addr{literal}
		default:
			found, _ = p.config.Resolve(ctx, host)
		}
		for _, a := range found {
			own = append(own, netip.AddrPortFrom(a, uint16(port)))
		}
	}
	return own
}

// interfaces returns the addresses of the network interfaces of this host.
func interfaces() (found []netip.Addr) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range all {
		if in, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(in.IP); ok {
				found = append(found, addr)
			}
		}
	}
	return found
}

// errRefused is returned for a target that the hub does not connect to.
var errRefused = errors.New("the hub does not connect to this address and port")

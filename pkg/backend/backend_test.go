package backend_test

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/faroshq/kedge-hub/pkg/backend"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	public  = "93.184.216.34"
	private = "10.1.2.3"
	// host is a name in the certificate of httptest.
	host = "https://example.com/health"
	// refusedText is a part of the error for what the hub does not dial.
	refusedText = "does not connect to this address"
)

// server is a server on loopback that the dialled addresses lead to.
type server struct {
	*httptest.Server
	dialled []netip.AddrPort
	request *http.Request
}

func serve(t *testing.T, answer http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.request = r
		answer(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *server) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	s.dialled = append(s.dialled, to)
	return (&net.Dialer{}).DialContext(ctx, "tcp", s.Listener.Addr().String())
}

func (s *server) config(resolve func(string) []string) backend.Config {
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return backend.Config{
		Roots: roots, Dial: s.dial,
		Allowed: func(to netip.AddrPort, own []netip.AddrPort) bool {
			return !to.Addr().IsPrivate() && !to.Addr().IsLoopback() && !slices.Contains(own, to)
		},
		Resolve: func(_ context.Context, host string) (found []netip.Addr, err error) {
			for _, a := range resolve(host) {
				found = append(found, netip.MustParseAddr(a))
			}
			return found, nil
		},
	}
}

func resolves(to ...string) func(string) []string { return func(string) []string { return to } }

func ok(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

func TestProbe_takesAnyAnswerAndSendsNothingOfValue(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	for _, code := range []int{http.StatusOK, http.StatusFound, http.StatusUnauthorized, http.StatusInternalServerError} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "https://elsewhere.example.com/")
			w.Header().Set("Set-Cookie", "a=b")
			w.WriteHeader(code)
		})
		p := backend.New(s.config(resolves(public)))
		require.NoError(t, p.Probe(t.Context(), "https://user:secret@example.com:8443/health?a=b#c"), code)
		require.NoError(t, p.Probe(t.Context(), "https://user:secret@example.com:8443/health?a=b#c"), code)
		require.Equal(t, []netip.AddrPort{netip.MustParseAddrPort(public + ":8443"), netip.MustParseAddrPort(public + ":8443")}, s.dialled, "redirects are not followed")
		require.Equal(t, http.MethodHead, s.request.Method)
		require.Equal(t, "/health?a=b", s.request.RequestURI)
		require.Equal(t, "example.com:8443", s.request.Host)
		require.Empty(t, s.request.Header.Get("Authorization"))
		require.Empty(t, s.request.Header.Get("Cookie"))
	}
}

func TestProbe_dialsCheckedAddressesOnly(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		url     string
		resolve func(string) []string
		dialled []string
		reason  string
	}{
		"a public address":                   {host, resolves(public), []string{public + ":443"}, ""},
		"a public address, mapped":           {host, resolves("::ffff:" + public), []string{public + ":443"}, ""},
		"a private address":                  {host, resolves(private), nil, refusedText},
		"a private address, mapped":          {host, resolves("::ffff:" + private), nil, refusedText},
		"a public and a private address":     {host, resolves(public, private), nil, refusedText},
		"a private and a public address":     {host, resolves(private, public), nil, refusedText},
		"a literal private address":          {"https://" + private + "/", resolves(public), nil, refusedText},
		"a literal loopback address, mapped": {"https://[::ffff:127.0.0.1]/", resolves(public), nil, refusedText},
		"no address":                         {host, resolves(), nil, "no addresses"},
		"another host than the certificate":  {"https://other.example.org/", resolves(public), []string{public + ":443"}, "certificate"},
		"a URL without TLS":                  {"http://example.com/", resolves(public), nil, "https://"},
		"a URL without a host":               {"https:///", resolves(public), nil, "https://"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, ok)
			problem := backend.New(s.config(test.resolve)).Probe(t.Context(), test.url)
			dialled := []string{}
			for _, a := range s.dialled {
				dialled = append(dialled, a.String())
			}
			require.ElementsMatch(t, test.dialled, dialled)
			if test.reason == "" {
				require.NoError(t, problem)
				return
			}
			require.ErrorContains(t, problem, test.reason)
		})
	}
}

// A publisher cannot have the hub connect to itself or to its identity provider, whatever name
// leads there.
func TestProbe_dialsNoneOfTheHubsOwnAddresses(t *testing.T) {
	t.Parallel()
	const mine, listener = "198.51.100.7", "203.0.113.9"
	for name, test := range map[string]struct {
		to  string
		own []string
		ok  bool
	}{
		"another server":              {public, []string{"hub.example.com:443", "0.0.0.0:443", listener + ":9464"}, true},
		"a name of the hub":           {mine, []string{"hub.example.com:443"}, false},
		"the address of a listener":   {listener, []string{listener + ":443"}, false},
		"all interfaces":              {listener, []string{"0.0.0.0:443"}, false},
		"all interfaces, IPv6":        {listener, []string{"[::]:443"}, false},
		"all interfaces, unnamed":     {listener, []string{":443"}, false},
		"a name that has no address":  {public, []string{"nowhere.example.com:443"}, true},
		"what is no host and no port": {public, []string{"hub", "hub:https"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, ok)
			c := s.config(func(host string) []string {
				return map[string][]string{"example.com": {test.to}, "hub.example.com": {mine}}[host]
			})
			c.Own, c.Interfaces = test.own, func() []netip.Addr { return []netip.Addr{netip.MustParseAddr(listener)} }
			err := backend.New(c).Probe(t.Context(), host)
			if test.ok {
				require.NoError(t, err)
				require.NotEmpty(t, s.dialled)
				return
			}
			require.ErrorContains(t, err, refusedText)
			require.Empty(t, s.dialled)
		})
	}
}

// The name resolves to a public address when it is checked and to a private one afterwards.
func TestProbe_resolvesANameOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, ok)
	var asked atomic.Int32
	p := backend.New(s.config(func(string) []string {
		if asked.Add(1) == 1 {
			return []string{public}
		}
		return []string{private}
	}))
	require.NoError(t, p.Probe(t.Context(), host))
	require.Equal(t, int32(1), asked.Load())
	require.Equal(t, public+":443", s.dialled[0].String())
	require.ErrorContains(t, p.Probe(t.Context(), host), refusedText, "the next probe resolves and checks again")
	require.Len(t, s.dialled, 1)
}

func TestProbe_triesTheNextAddress(t *testing.T) {
	t.Parallel()
	s := serve(t, ok)
	c := s.config(resolves("198.51.100.1", public))
	dial := c.Dial
	c.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		if to.Addr().String() != public {
			return nil, errors.New("unreachable")
		}
		return dial(ctx, to)
	}
	require.NoError(t, backend.New(c).Probe(t.Context(), host))
}

func TestProbe_tellsTheLogWhatFailed(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.ParseIP(public)}, Err: errors.New("connection refused")}
	plain := func(answer string) func(context.Context, netip.AddrPort) (net.Conn, error) {
		return func(context.Context, netip.AddrPort) (net.Conn, error) {
			here, there := net.Pipe()
			go func() {
				_, _ = there.Read(make([]byte, 64<<10))
				_, _ = io.WriteString(there, answer)
				_ = there.Close()
			}()
			return here, nil
		}
	}
	failing := func(err error) func(context.Context, netip.AddrPort) (net.Conn, error) {
		return func(context.Context, netip.AddrPort) (net.Conn, error) { return nil, err }
	}
	for name, test := range map[string]struct {
		change func(*backend.Config)
		reason string
	}{
		"refused":       {func(c *backend.Config) { c.Dial = failing(refused) }, "connection refused"},
		"silent":        {func(c *backend.Config) { c.Dial = failing(os.ErrDeadlineExceeded) }, "i/o timeout"},
		"without TLS":   {func(c *backend.Config) { c.Dial = plain("HTTP/1.1 400 Bad Request\r\n\r\n") }, "HTTP response to HTTPS client"},
		"an unknown CA": {func(c *backend.Config) { c.Roots = x509.NewCertPool() }, "unknown authority"},
		"an unknown name": {func(c *backend.Config) {
			c.Resolve = func(context.Context, string) ([]netip.Addr, error) {
				return nil, &net.DNSError{Err: "no such host", Name: "internal.corp", IsNotFound: true}
			}
		}, "no such host"},
		"no resolver": {func(c *backend.Config) {
			c.Resolve = func(context.Context, string) ([]netip.Addr, error) {
				return nil, &net.DNSError{Err: "server misbehaving", Name: "example.com", Server: "10.0.0.1:53"}
			}
		}, "server misbehaving"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, ok).config(resolves(public))
			test.change(&c)
			require.ErrorContains(t, backend.New(c).Probe(t.Context(), host), test.reason)
		})
	}
}

func TestProbe_readsALimitedHeader(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", 1<<20))
		w.WriteHeader(http.StatusOK)
	})
	require.Error(t, backend.New(s.config(resolves(public))).Probe(t.Context(), host))
	short := serve(t, ok)
	require.NoError(t, backend.New(short.config(resolves(public))).Probe(t.Context(), host))
}

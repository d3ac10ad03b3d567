package httpmw_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

var trusted = httpmw.TrustedProxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}

// finder returns a func that returns the peer of a request, as a handler behind Observe sees it.
func finder(t testing.TB) func(remote string, forwarded ...string) netip.Addr {
	t.Helper()
	m, err := httpmw.NewMetrics(prometheus.NewRegistry())
	require.NoError(t, err)
	var found netip.Addr
	h := httpmw.Observe(zap.NewNop(), m, trusted)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { found = httpmw.Peer(r) }))
	return func(remote string, forwarded ...string) netip.Addr {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = remote
		r.Header["X-Forwarded-For"] = forwarded
		h.ServeHTTP(httptest.NewRecorder(), r)
		return found
	}
}

func TestPeer_believesTrustedProxiesAlone(t *testing.T) {
	t.Parallel()
	const proxy = "10.0.0.1:4711"
	peer := finder(t)
	for name, c := range map[string]struct {
		remote    string
		forwarded []string
		want      string
	}{
		"no proxy":                              {"192.0.2.1:4711", nil, "192.0.2.1"},
		"forged by a client":                    {"192.0.2.1:4711", []string{"198.51.100.7"}, "192.0.2.1"},
		"forged as a trusted proxy":             {"192.0.2.1:4711", []string{"198.51.100.7, 10.0.0.2"}, "192.0.2.1"},
		"behind a proxy":                        {proxy, []string{"198.51.100.7"}, "198.51.100.7"},
		"forged behind a proxy":                 {proxy, []string{"203.0.113.9, 198.51.100.7"}, "198.51.100.7"},
		"forged behind a proxy, as a proxy":     {proxy, []string{"10.9.9.9, 198.51.100.7"}, "198.51.100.7"},
		"forged in another line":                {proxy, []string{"203.0.113.9", "198.51.100.7"}, "198.51.100.7"},
		"two proxies":                           {proxy, []string{"203.0.113.9, 198.51.100.7, 10.0.0.2"}, "198.51.100.7"},
		"two proxies, two lines":                {proxy, []string{"198.51.100.7", "fd00::2"}, "198.51.100.7"},
		"proxies only":                          {proxy, []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		"a proxy without the header":            {proxy, nil, "10.0.0.1"},
		"an empty header":                       {proxy, []string{""}, "10.0.0.1"},
		"an empty hop":                          {proxy, []string{"198.51.100.7, "}, "10.0.0.1"},
		"no address":                            {proxy, []string{"198.51.100.7, unknown"}, "10.0.0.1"},
		"no address, behind a second proxy":     {proxy, []string{"198.51.100.7, _hidden, 10.0.0.2"}, "10.0.0.2"},
		"no address to the left":                {proxy, []string{"<script>, 198.51.100.7"}, "198.51.100.7"},
		"a number that is no address":           {proxy, []string{"198.51.100.07"}, "10.0.0.1"},
		"a port":                                {proxy, []string{"198.51.100.7:80"}, "198.51.100.7"},
		"IPv6":                                  {proxy, []string{"2001:db8::7"}, "2001:db8::7"},
		"IPv6 with a port":                      {proxy, []string{"[2001:db8::7]:80"}, "2001:db8::7"},
		"IPv6 with a zone":                      {proxy, []string{"fe80::7%eth0"}, "fe80::7"},
		"IPv4 in IPv6":                          {proxy, []string{"::ffff:198.51.100.7"}, "198.51.100.7"},
		"a socket that takes IPv4 over IPv6":    {"[::ffff:10.0.0.1]:4711", []string{"198.51.100.7"}, "198.51.100.7"},
		"a trusted IPv6 proxy":                  {"[fd00::1]:4711", []string{"198.51.100.7"}, "198.51.100.7"},
		"a socket without an address":           {"@", []string{"198.51.100.7"}, ""},
		"tabs around a hop, as the RFC permits": {proxy, []string{"203.0.113.9,\t198.51.100.7\t"}, "198.51.100.7"},
	} {
		want, _ := netip.ParseAddr(c.want)
		require.Equal(t, want, peer(c.remote, c.forwarded...), name)
	}
}

// Whatever the header holds, a client cannot move its peer past the first hop that is not trusted.
func FuzzForwardedFor(f *testing.F) {
	f.Add("198.51.100.7, 10.0.0.2", "10.0.0.3")
	f.Add("", ",")
	f.Add("unknown,,[::1]:1", "fe80::1%a, 1.2.3.4:5")
	peer := finder(f)
	f.Fuzz(func(t *testing.T, forged, more string) {
		require.Equal(t, "192.0.2.1", peer("192.0.2.1:1", forged, more).String(), "an untrusted peer is what it is")
		require.Equal(t, "198.51.100.7", peer("10.0.0.1:1", forged, more, "198.51.100.7").String(), "a client behind a proxy, too")
		require.Equal(t, "198.51.100.7", peer("10.0.0.1:1", forged+","+more+",198.51.100.7,10.0.0.2").String(), "behind two proxies, too")
		found := peer("10.0.0.1:1", forged, more)
		require.True(t, found.IsValid())
		require.Empty(t, found.Zone())
		require.False(t, found.Is4In6())
	})
}

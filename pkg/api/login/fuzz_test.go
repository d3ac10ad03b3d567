package login

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLoopbackCallback_isExact(t *testing.T) {
	t.Parallel()
	for _, uri := range []string{"http://127.0.0.1:1/callback", "http://127.0.0.1:65535/callback", "http://[::1]:8080/callback"} {
		require.True(t, loopbackCallback(uri), uri)
	}
	for _, uri := range []string{
		"", "http://127.0.0.1/callback", "http://127.0.0.1:/callback", "http://127.0.0.1:0/callback", "http://127.0.0.1:65536/callback",
		"http://127.0.0.1:080/callback", "http://127.0.0.1:+80/callback", "http://127.0.0.1:8_0/callback", "http://127.0.0.1: 80/callback",
		"https://127.0.0.1:80/callback", "HTTP://127.0.0.1:80/callback", "http://localhost:80/callback", "http://127.0.0.2:80/callback",
		"http://127.1:80/callback", "http://0x7f000001:80/callback", "http://[::1%25lo]:80/callback", "http://[0:0:0:0:0:0:0:1]:80/callback",
		"http://127.0.0.1:80/callback/", "http://127.0.0.1:80//callback", "http://127.0.0.1:80/x/../callback", "http://127.0.0.1:80/callback?a=b",
		"http://127.0.0.1:80/callback#a", "http://127.0.0.1:80@evil.example.com/callback", "http://user@127.0.0.1:80/callback",
		"http://127.0.0.1:80/callback ", " http://127.0.0.1:80/callback", "http://127.0.0.1:80/Callback", "http://127.0.0.1.evil.example.com:80/callback",
		"http://127.0.0.1:٣/callback",
	} {
		require.False(t, loopbackCallback(uri), uri)
	}
}

// FuzzRedirectURI: what is accepted leads to a loopback address and nowhere else.
func FuzzRedirectURI(f *testing.F) {
	f.Add("http://127.0.0.1:41234/callback")
	f.Add("http://[::1]:41234/callback")
	f.Add("http://127.0.0.1:80@evil.example.com/callback")
	f.Fuzz(func(t *testing.T, uri string) {
		if !loopbackCallback(uri) {
			return
		}
		u, err := url.Parse(uri)
		require.NoError(t, err)
		require.Equal(t, "http", u.Scheme)
		require.Equal(t, "/callback", u.Path)
		require.Equal(t, uri, "http://"+u.Host+"/callback")
		require.Nil(t, u.User)
		address, err := netip.ParseAddrPort(u.Host)
		require.NoError(t, err)
		require.True(t, address.Addr().IsLoopback())
		require.NotZero(t, address.Port())
	})
}

// FuzzReturnTo: what is accepted stays on the hub when a browser resolves it, which drops
// control characters and reads backslashes as slashes.
func FuzzReturnTo(f *testing.F) {
	for _, seed := range []string{"/", "/ui/orgs?a=b#c", "//evil.example.com", `/\evil.example.com`, "/\t/evil.example.com", "/.//evil.example.com", "/%2f/evil.example.com"} {
		f.Add(seed)
	}
	base, err := url.Parse("https://hub.example.com/auth/callback")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, to string) {
		if !localPath(to) {
			return
		}
		read := strings.ReplaceAll(strings.Map(func(c rune) rune {
			if c <= ' ' {
				return -1
			}
			return c
		}, to), `\`, "/")
		require.Equal(t, to, read)
		u, err := base.Parse(read)
		require.NoError(t, err)
		require.Equal(t, "https://hub.example.com", u.Scheme+"://"+u.Host)
	})
}

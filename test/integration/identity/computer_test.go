package identity

import (
	"fmt"
	"html"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// loopback is a program that listens on a loopback port of the person's computer: a command line,
// or another user's.
type loopback struct {
	*framework.Login
	mu      sync.Mutex
	answers []url.Values
}

func newLoopback(t *testing.T) *loopback {
	t.Helper()
	l := &loopback{Login: framework.NewLogin()}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/callback" {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.answers = append(l.answers, r.URL.Query())
		}
		_, _ = fmt.Fprint(w, "<!doctype html><title>listener</title><p>answered")
	}))
	t.Cleanup(s.Close)
	l.RedirectURI = s.URL + "/callback"
	return l
}

// got returns what browsers brought, of one name.
func (l *loopback) got(name string) (values []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.answers {
		if a.Has(name) {
			values = append(values, a.Get(name))
		}
	}
	return values
}

// site serves pages of another site, by path.
func site(t *testing.T, pages map[string]string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, "<!doctype html><title>evil</title>%s", pages[r.URL.Path])
	}))
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	require.NoError(t, err)
	return "http://localhost:" + port
}

// asking waits for the page of the hub that asks about the computer.
func asking(t *testing.T, c *framework.Chromium, hub *framework.Hub) {
	t.Helper()
	c.At(t, hub.URL+"/auth/callback")
	require.Contains(t, c.Text(t, "main"), "Continue only if you ran kedge login")
}

// The person has a session at the identity provider, so that nothing but the page of the hub is in the way of a code.
func TestAuthorize_asksOnAPageOfTheHub(t *testing.T) {
	t.Parallel()
	hub := framework.StartHub(t, kcp, framework.NewRoot(), framework.WithDex(t, silent))
	loginsWork(t, hub)
	// This part is the first, because it counts all logins of the hub.
	t.Run("and gives other sites no code", func(t *testing.T) { givesOtherSitesNoCode(t, hub) })
	t.Run("and shows who asks", func(t *testing.T) { showsWhoAsks(t, hub) })
}

// Pages of another site name the port of a listener of another user of the computer.
func givesOtherSitesNoCode(t *testing.T, hub *framework.Hub) {
	mallory := newLoopback(t)
	at, fields := mallory.URL(hub.Client), ""
	parsed, err := url.Parse(at)
	require.NoError(t, err)
	for name, values := range parsed.Query() {
		fields += fmt.Sprintf(`<input type="hidden" name="%s" value="%s">`, name, html.EscapeString(values[0]))
	}
	at = html.EscapeString(at)
	evil := site(t, map[string]string{
		"/link":   `<a id="go" href="` + at + `">Win</a>`,
		"/script": `<button id="go" onclick="location = document.querySelector('a').href">Win</button><a href="` + at + `"></a>`,
		"/form":   `<form method="get" action="` + hub.URL + `/auth/authorize">` + fields + `<button id="go">Win</button></form>`,
		"/image":  `<img src="` + at + `" onerror="document.title = 'done'" onload="document.title = 'done'">`,
		"/frame":  `<iframe src="` + at + `" onload="document.title = 'done'"></iframe>`,
		"/post": `<form method="post" action="` + hub.URL + `/auth/authorize">` +
			`<input type="hidden" name="login" value="x"><input type="hidden" name="decision" value="continue"><button id="go">Win</button></form>`,
	})
	c := framework.StartChromium(t, silent.CertFile(), certFile(hub))
	for _, attack := range []string{"/link", "/script", "/form"} {
		tab := c.Tab("private " + attack)
		tab.Open(t, evil+attack)
		tab.Click(t, "#go")
		asking(t, tab, hub)
		require.Empty(t, mallory.got("code"), attack)
		// The login is in progress in this browser, and the site tries to answer the page, too.
		tab.Open(t, evil+"/post")
		tab.Click(t, "#go")
		tab.At(t, hub.URL+"/auth/authorize")
		require.Contains(t, tab.Text(t, "main"), "another site")
		require.Empty(t, mallory.got("code"), attack)
	}
	for _, attack := range []string{"/image", "/frame"} {
		tab := c.Tab("private " + attack)
		tab.Open(t, evil+attack)
		tab.Until(t, "document.title === 'done'")
		require.Empty(t, mallory.got("code"), attack)
	}
	require.Empty(t, mallory.got("error"))
	require.Zero(t, metric(t, hub, "kedge_logins_total"))

	// The command line of the person gets its code with a click.
	alice := newLoopback(t)
	tab := c.Tab("private alice")
	tab.Open(t, alice.URL(hub.Client))
	asking(t, tab, hub)
	tab.Click(t, "#continue")
	tab.At(t, alice.RedirectURI)
	codes := alice.got("code")
	require.Len(t, codes, 1)
	hub.Do(t, whoIs(framework.TokensOf(t, alice.Redeem(t, hub.Client, codes[0])).Access), http.StatusOK)
	tab.Back(t)
	require.NotContains(t, tab.Text(t, "body"), "answered")
	require.Len(t, alice.got("code"), 1)
	require.Empty(t, mallory.got("code"))
}

// loginsWork waits until the hub has found its identity provider.
func loginsWork(t *testing.T, hub *framework.Hub) {
	t.Helper()
	b := framework.NewBrowser(t, hub.CA)
	b.HTTP.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	framework.Eventually(t, framework.Long, func() error {
		return framework.Equal(http.StatusSeeOther, b.Get(t, hub.URL+"/auth/login").Code)
	})
}

// The page shows what would be signed in as whom, and works with a keyboard alone, in a narrow window.
func showsWhoAsks(t *testing.T, hub *framework.Hub) {
	c := framework.StartChromium(t, silent.CertFile(), certFile(hub))
	for _, keys := range []string{"\t\r", "\t\t\r"} {
		l := newLoopback(t)
		c.Open(t, l.URL(hub.Client))
		asking(t, c, hub)
		shown := c.Text(t, "main")
		for _, text := range []string{"Kilgore Trout", "test", "127.0.0.1", strings.TrimSuffix(strings.TrimPrefix(l.RedirectURI, "http://"), "/callback")} {
			require.Contains(t, shown, text)
		}
		c.Fits(t, 360, 640)
		for _, scheme := range []string{"dark", "light"} {
			c.Scheme(t, scheme)
			require.Empty(t, c.Violations(t))
		}
		c.Keys(t, keys)
		c.At(t, l.RedirectURI)
		if keys == "\t\r" {
			require.Len(t, l.got("code"), 1)
			continue
		}
		require.Empty(t, l.got("code"))
		require.Equal(t, []string{"access_denied"}, l.got("error"))
	}
	quiet(t, c)
}

package identity

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// certFile is the certificate that a hub serves.
func certFile(hub *framework.Hub) string {
	return filepath.Join(hub.Options.DataDir, "tls", "tls.crt")
}

// quiet requires that the browser's console shows no violation of the content security policy
// and no script that failed. Dex's own pages and the browser's search for an icon are not the
// hub's.
func quiet(t *testing.T, c *framework.Chromium) {
	t.Helper()
	for _, line := range c.Console(t) {
		require.NotContains(t, line, "Content Security Policy")
		require.NotContains(t, line, "exception")
	}
}

// A person logs in to the portal with a browser and is led back. The cookie is out of the
// reach of scripts and of other sites, and is no credential under /clusters.
func TestPortal_logsABrowserIn(t *testing.T) {
	t.Parallel()
	hub := kcp.SharedWithDex(t, dex, 1)[0]
	ready(t, hub, dex.IDToken(t, framework.HubClient, "alice"))
	c := framework.StartChromium(t, dex.CertFile(), certFile(hub))
	c.Open(t, hub.URL+"/auth/login?return_to=/version")
	dex.LogInWith(t, c, "alice")
	c.At(t, hub.URL+"/version")
	require.Equal(t, []framework.BrowserCookie{{Name: "__Host-kedge", Value: c.Cookies(t)[0].Value, Path: "/", SameSite: "Lax", Secure: true, HTTPOnly: true}}, c.Cookies(t))
	c.Open(t, hub.URL+"/api/users/me")
	require.Contains(t, c.Text(t, "body"), "alice")
	c.Open(t, hub.URL+"/clusters/root/api/v1/namespaces")
	require.Contains(t, c.Text(t, "body"), "Unauthorized")
	quiet(t, c)
}

// The cookie of the portal as a credential: what a page of another site sends with it is
// refused, with or without a body, and it ends with its session on every replica.
func TestCookie_isACredentialOfItsOwnSite(t *testing.T) {
	t.Parallel()
	hubs := kcp.SharedWithDex(t, dex, 2)
	for _, hub := range hubs {
		ready(t, hub, dex.IDToken(t, framework.HubClient, "alice"))
	}
	hub := hubs[0]
	b := framework.NewBrowser(t, dex.CAFile, hub.CA)
	p := dex.LogIn(t, b, hub.URL+"/auth/login?return_to=/version", "alice")
	require.Equal(t, http.StatusOK, p.Code)
	require.Equal(t, "/version", p.URL.Path)
	cookie := b.Cookie(t, hub.URL, "__Host-kedge")
	require.NotNil(t, cookie)
	own := "__Host-kedge=" + cookie.Value
	me := hub.Do(t, call{Method: http.MethodGet, Path: "/api/users/me", Header: http.Header{"Cookie": {own}}}, http.StatusOK).Text("name")

	changed := own[:len(own)-2] + "xx"
	for name, c := range map[string]struct {
		method, path string
		header       http.Header
		code         int
	}{
		"another site's write":          {http.MethodPost, "/api/orgs", http.Header{"Cookie": {own}, "Sec-Fetch-Site": {"cross-site"}}, http.StatusForbidden},
		"another origin's write":        {http.MethodPost, "/api/orgs", http.Header{"Cookie": {own}, "Origin": {"https://evil.example"}}, http.StatusForbidden},
		"a sibling's write":             {http.MethodPatch, "/api/users/me", http.Header{"Cookie": {own}, "Sec-Fetch-Site": {"same-site"}}, http.StatusForbidden},
		"another site's bodiless write": {http.MethodDelete, "/api/users/me", http.Header{"Cookie": {own}, "Sec-Fetch-Site": {"cross-site"}}, http.StatusForbidden},
		"another site's logout":         {http.MethodPost, "/auth/logout", http.Header{"Cookie": {own}, "Sec-Fetch-Site": {"cross-site"}}, http.StatusForbidden},
		"under /clusters":               {http.MethodGet, "/clusters/root/api/v1/namespaces", http.Header{"Cookie": {own}}, http.StatusUnauthorized},
		"a changed cookie":              {http.MethodGet, "/api/users/me", http.Header{"Cookie": {changed}}, http.StatusUnauthorized},
		"the cookie twice":              {http.MethodGet, "/api/users/me", http.Header{"Cookie": {own + "; " + own}}, http.StatusUnauthorized},
		"a bad bearer beside it":        {http.MethodGet, "/api/users/me", http.Header{"Cookie": {own}, "Authorization": {"Bearer x"}}, http.StatusUnauthorized},
	} {
		a, err := hub.Try(call{Method: c.method, Path: c.path, Header: c.header})
		require.NoError(t, err)
		require.Equal(t, c.code, a.Code, "%s: %s", name, a.Raw)
	}
	bob := call{Token: dex.IDToken(t, framework.HubClient, "bob"), Method: http.MethodGet, Path: "/api/users/me", Header: http.Header{"Cookie": {own}}}
	require.NotEqual(t, me, hub.Do(t, bob, http.StatusOK).Text("name"), "the bearer counts")
	hub.Made(t, call{
		Method: http.MethodPost, Path: "/api/orgs", Body: map[string]string{"displayName": "ACME"},
		Header: http.Header{"Cookie": {own}, "Sec-Fetch-Site": {"same-origin"}},
	})

	request, err := http.NewRequest(http.MethodPost, hub.URL+"/auth/logout", http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	require.Equal(t, http.StatusOK, b.Do(t, request).Code)
	require.Nil(t, b.Cookie(t, hub.URL, "__Host-kedge"))
	for _, hub := range hubs {
		framework.Eventually(t, framework.Long, func() error {
			a := hub.Do(t, call{Method: http.MethodGet, Path: "/api/users/me", Header: http.Header{"Cookie": {own}}}, http.StatusOK, http.StatusUnauthorized)
			return framework.Equal(http.StatusUnauthorized, a.Code)
		})
	}
}

// A person confirms the code of a device in a browser, after having logged in and seen which
// device asks. What the device says about itself is shown as text.
func TestDevice_isConfirmedInABrowser(t *testing.T) {
	t.Parallel()
	hub := kcp.SharedWithDex(t, dex, 1)[0]
	ready(t, hub, dex.IDToken(t, framework.HubClient, "carol"))
	const hostile = `<img src=x onerror=alert(1)>"'&`
	device := hub.Form(t, "/auth/device", url.Values{"description": {hostile}})
	require.Equal(t, http.StatusOK, device.Code, "%s", device.Raw)
	poll := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "device_code": {device.Text("device_code")}}
	require.Equal(t, "authorization_pending", hub.Token(t, poll).Text("error"))

	c := framework.StartChromium(t, dex.CertFile(), certFile(hub))
	c.Open(t, device.Text("verification_uri_complete"))
	require.NotContains(t, c.Text(t, "main"), device.Text("user_code"), "the person types the code")
	c.Fits(t, 360, 640)
	c.Fill(t, "#user_code", device.Text("user_code"))
	c.Click(t, "#continue")
	c.Until(t, "!!document.querySelector('#login')")
	require.Contains(t, c.Text(t, "main"), device.Text("user_code"))
	c.Fits(t, 360, 640)
	c.Click(t, "#login")
	dex.LogInWith(t, c, "carol")
	c.At(t, hub.URL+"/auth/callback")
	asked := c.Text(t, "main")
	for _, shown := range []string{device.Text("user_code"), hostile, "127.0.0.1", "carol"} {
		require.Contains(t, asked, shown)
	}
	c.Fits(t, 360, 640)
	c.Click(t, "#confirm")
	c.At(t, hub.URL+"/auth/device/verify")
	require.Contains(t, c.Text(t, "main"), "logged in")
	quiet(t, c)

	// A client that asks more often than the interval is told to slow down.
	interval := time.NewTicker(time.Duration(device.JSON["interval"].(float64)) * time.Second)
	defer interval.Stop()
	// As kedge does, it asks again at the next interval while the hub has lost kcp for a moment.
	polled := func() framework.Answer {
		for {
			<-interval.C
			a, err := hub.TryForm("/auth/token", poll)
			require.NoError(t, err)
			if a.Text("error") != "temporarily_unavailable" {
				return a
			}
		}
	}
	tokens := framework.TokensOf(t, polled())
	require.True(t, strings.HasPrefix(hub.Do(t, whoIs(tokens.Access), http.StatusOK).Text("name"), "carol"))
	require.Equal(t, tokens.Secret, framework.TokensOf(t, polled()).Secret, "an answer may have been lost")
	framework.TokensOf(t, hub.Refresh(t, tokens.Secret))
	require.Equal(t, "invalid_grant", polled().Text("error"), "the code works for one device")
}

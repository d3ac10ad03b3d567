package identity

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// page sends a request to a path of the hub with the cookies of a browser, as a page of the hub
// does.
func page(t *testing.T, hub *framework.Hub, b *framework.Browser, method, path string) *framework.Page {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, hub.URL+path, http.NoBody)
	require.NoError(t, err)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.Do(t, r)
}

var linkToLogin = regexp.MustCompile(`id="login" href="([^"]+)"`)

// A command line without a browser gets its tokens when the person confirms the code that it
// shows, and not before.
func TestDevice_isConfirmedInABrowserElsewhere(t *testing.T) {
	t.Parallel()
	hub := kcp.SharedWithDex(t, dex, 1)[0]
	ready(t, hub, dex.IDToken(t, framework.HubClient, "alice"))
	for decision, outcome := range map[string]string{"confirm": "", "deny": "access_denied"} {
		device := hub.Form(t, "/auth/device", url.Values{"description": {"<b>server-1</b>"}})
		require.Equal(t, http.StatusOK, device.Code, string(device.Raw))
		b := framework.NewBrowser(t, dex.CAFile, hub.CA)
		opened := b.Get(t, device.Text("verification_uri_complete"))
		require.NotContains(t, opened.Body, device.Text("user_code"), "the person types the code")
		entered := b.Submit(t, opened, url.Values{"user_code": {device.Text("user_code")}})
		link := linkToLogin.FindStringSubmatch(entered.Body)
		require.NotNil(t, link, entered.Body)
		asked := dex.LogIn(t, b, hub.URL+link[1], "alice")
		for _, shown := range []string{device.Text("user_code"), "&lt;b&gt;server-1&lt;/b&gt;", "127.0.0.1", "alice"} {
			require.Contains(t, asked.Body, shown)
		}
		// A part of a sealed login can begin like a token, by chance; it has no dots.
		require.NotRegexp(t, `eyJ[\w-]+\.[\w-]+\.`, asked.Body, "no token on the page")
		answered := b.Submit(t, asked, url.Values{"decision": {decision}})
		require.Equal(t, http.StatusOK, answered.Code, answered.Body)
		require.Equal(t, http.StatusBadRequest, b.Submit(t, asked, url.Values{"decision": {"confirm"}}).Code, "a second answer")
		a := hub.Token(t, url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "device_code": {device.Text("device_code")}})
		require.Equal(t, outcome, a.Text("error"), string(a.Raw))
		if outcome == "" {
			hub.Do(t, whoIs(framework.TokensOf(t, a).Access), http.StatusOK)
		}
	}
}

// What the pages say before the login does not depend on the code. After it, a login is good for one.
func TestDevice_isLookedAtAfterTheLogin(t *testing.T) {
	t.Parallel()
	hub := kcp.SharedWithDex(t, dex, 1)[0]
	ready(t, hub, dex.IDToken(t, framework.HubClient, "alice"))
	known, unknown := hub.Form(t, "/auth/device", url.Values{}).Text("user_code"), "BCDF-GHJK"
	b := framework.NewBrowser(t, dex.CAFile, hub.CA)
	enter := func(code string) string {
		return b.Submit(t, b.Get(t, hub.URL+"/auth/device/verify"), url.Values{"user_code": {code}}).Body
	}
	require.Equal(t, enter(known), strings.ReplaceAll(enter(unknown), unknown, known))
	enter(unknown)
	refused := dex.LogIn(t, b, hub.URL+"/auth/device/login", "alice")
	require.Equal(t, http.StatusBadRequest, refused.Code)
	require.Contains(t, refused.Body, "There is no such code")
	require.Nil(t, b.Cookie(t, hub.URL, "__Host-kedge-login"))
	require.Equal(t, http.StatusBadRequest, b.Get(t, hub.URL+"/auth/device/login?user_code="+known).Code, "a link with a code")
	enter(known)
	require.Contains(t, dex.LogIn(t, b, hub.URL+"/auth/device/login", "alice").Body, "Confirm this login")
}

// A browser works with a cookie, at /api and nowhere else, until the person logs out.
func TestPortal_worksWithACookieUntilTheLogout(t *testing.T) {
	t.Parallel()
	hub := kcp.SharedWithDex(t, dex, 1)[0]
	ready(t, hub, dex.IDToken(t, framework.HubClient, "alice"))
	b := framework.NewBrowser(t, dex.CAFile, hub.CA)
	me := dex.LogIn(t, b, hub.URL+"/auth/login?return_to=/api/users/me", "alice")
	require.Equal(t, http.StatusOK, me.Code, me.Body)
	require.Equal(t, hub.URL+"/api/users/me", me.URL.String())
	cookie := b.Cookie(t, hub.URL, "__Host-kedge")
	require.NotNil(t, cookie)
	require.Equal(t, http.StatusUnauthorized, page(t, hub, b, http.MethodGet, "/clusters/root").Code)

	cross, err := http.NewRequestWithContext(t.Context(), http.MethodPost, hub.URL+"/auth/logout", http.NoBody)
	require.NoError(t, err)
	cross.Header.Set("Origin", "https://evil.example.com")
	require.Equal(t, http.StatusForbidden, b.Do(t, cross).Code)
	require.Equal(t, http.StatusOK, page(t, hub, b, http.MethodGet, "/api/users/me").Code)

	require.Equal(t, http.StatusOK, page(t, hub, b, http.MethodPost, "/auth/logout").Code)
	require.Nil(t, b.Cookie(t, hub.URL, "__Host-kedge"))
	stolen, err := http.NewRequestWithContext(t.Context(), http.MethodGet, hub.URL+"/api/users/me", http.NoBody)
	require.NoError(t, err)
	stolen.AddCookie(cookie)
	framework.Eventually(t, framework.Long, func() error {
		return framework.Equal(http.StatusUnauthorized, b.Do(t, stolen).Code)
	})
}

// The pages and the command line tell a person what the state of their account is.
func TestLogin_followsTheStateOfTheAccount(t *testing.T) {
	t.Parallel()
	hub := framework.StartHub(t, kcp, framework.NewRoot(), framework.WithDex(t, dex), framework.WithAdmin, func(o *server.Options) {
		o.Registration = "approval"
	})
	framework.SignUp(t, hub, "heidi")
	logIn := func(start, code string) *framework.Page {
		b := framework.NewBrowser(t, dex.CAFile, hub.CA)
		p := dex.LogIn(t, b, start, "bob")
		require.Equal(t, code, http.StatusText(p.Code), p.Body)
		return p
	}
	portal := hub.URL + "/auth/login"
	framework.Eventually(t, framework.Long, func() error {
		return framework.Equal(http.StatusOK, framework.NewBrowser(t, dex.CAFile, hub.CA).Get(t, portal).Code)
	})
	require.Contains(t, logIn(portal, "Forbidden").Body, "waits for the approval")
	refused := logIn(framework.NewLogin().URL(hub.Client), "See Other").Location.Query()
	require.Equal(t, "access_denied", refused.Get("error"))
	require.Contains(t, refused.Get("error_description"), "approval")

	hub.Do(t, call{As: "heidi", Method: http.MethodPatch, Path: "/api/admin/users/bob", Body: `{"registration":"Rejected","rejectionReason":"no <b>guests</b>"}`}, http.StatusOK)
	require.Contains(t, logIn(portal, "Forbidden").Body, "rejected (no &lt;b&gt;guests&lt;/b&gt;)")
	hub.Do(t, framework.Registering("bob", "Approved"), http.StatusOK)
	tokens := dex.LogInAt(t, hub.Client, "bob")
	hub.Do(t, call{Token: tokens.Access, Method: http.MethodDelete, Path: "/api/users/me"}, http.StatusNoContent, http.StatusAccepted, http.StatusOK)
	framework.Eventually(t, framework.Long, func() error {
		return framework.Check(hub.Refresh(t, tokens.Secret).Text("error") == "invalid_grant", "the session of a soft-deleted person is still good")
	})
	// Objects have whole seconds. The time of a deletion is rounded up, and a login in the
	// second of the deletion counts as earlier.
	deleted := time.Now().Unix() + 1
	framework.Eventually(t, framework.Long, func() error {
		return framework.Check(time.Now().Unix() > deleted, "the second of the deletion is not over")
	})
	back := dex.LogInAt(t, hub.Client, "bob")
	hub.Do(t, whoIs(back.Access), http.StatusOK)
	hub.Do(t, call{Token: back.Access, Method: http.MethodGet, Path: "/api/orgs"}, http.StatusForbidden)
}

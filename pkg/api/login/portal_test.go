package login_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/login"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

func TestPortal_logsInAndReturns(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	b := h.browser(t)
	b.header.Set("User-Agent", "Browser/1.0")
	to := b.logIn(b.get("/auth/login", url.Values{"return_to": {"/ui/orgs?a=b#c"}}), "alice").location(t)
	require.Equal(t, "/ui/orgs?a=b#c", to.String())
	require.Len(t, b.cookies, 1)
	require.Equal(t, "alice", h.sessions.cookies[b.cookies[sessionCookie]])
	require.Equal(t, v1alpha1.SessionPortal, h.sessions.logins[0].Client)
	require.Equal(t, "Browser/1.0", h.sessions.logins[0].Description)
	first := b.cookies[sessionCookie]
	require.Contains(t, b.logIn(b.get("/auth/login", nil), "alice").page(t, http.StatusOK), "You are logged in as Alice.")
	require.NotEqual(t, first, b.cookies[sessionCookie], "a new login is a new session")
}

func TestPortal_refusesAnOpenRedirect(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	for _, to := range []string{
		"https://evil.example.com/", "//evil.example.com", `/\evil.example.com`, `\\evil.example.com`, "/\t/evil.example.com",
		"/\r\nSet-Cookie: a=b", "javascript:alert(1)", "ui", " /ui", "/ui/\x00", "/%zz", "/ui é",
	} {
		b := h.browser(t)
		require.Contains(t, b.get("/auth/login", url.Values{"return_to": {to}}).page(t, http.StatusBadRequest), "return_to", to)
		require.Empty(t, b.cookies)
		b.post("/auth/logout", url.Values{"return_to": {to}}).page(t, http.StatusBadRequest)
	}
	h.browser(t).get("/auth/login", url.Values{"return_to": {"/ui", "/ui"}}).page(t, http.StatusBadRequest)
	h.browser(t).get("/auth/login", url.Values{"return_to": {"/ui"}}).location(t)
}

func TestPortal_showsARefusalInPlainWords(t *testing.T) {
	t.Parallel()
	for person, text := range map[string]string{"pending": "waits for the approval", "rejected": "was rejected"} {
		h := newHub(t)
		b := h.browser(t)
		require.Contains(t, b.logIn(b.get("/auth/login", nil), person).page(t, http.StatusForbidden), text)
		require.Empty(t, b.cookies)
	}
	h := newHub(t)
	b := h.browser(t)
	state := b.get("/auth/login", nil).location(t).Query().Get("state")
	page := b.get("/auth/callback", url.Values{"state": {state}, "error": {"<b>x"}, "error_description": {"<img src=x onerror=alert(1)>"}}).page(t, http.StatusForbidden)
	require.Contains(t, page, "&lt;b&gt;x (&lt;img src=x")
	require.NotContains(t, page, "<img")
}

func TestLogout_endsTheSessionOfTheCookie(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	b := h.browser(t)
	b.logIn(b.get("/auth/login", nil), "alice").page(t, http.StatusOK)
	h.events = nil
	b.do(http.MethodPost, "/auth/logout", "", "").page(t, http.StatusOK)
	require.Empty(t, b.cookies)
	require.Empty(t, h.sessions.cookies)
	require.Equal(t, both(login.Event{User: "alice", Action: "logout portal", Code: http.StatusOK, Session: "session-of-alice"}), h.events)
	require.Equal(t, "/ui/", b.post("/auth/logout", url.Values{"return_to": {"/ui/"}}).location(t).String(), "again, without a cookie")
	b.cookies[sessionCookie] = "ended"
	b.post("/auth/logout", nil).page(t, http.StatusOK)
	require.Empty(t, b.cookies)
}

func TestLogout_isNotForOtherSites(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	b := h.browser(t)
	b.logIn(b.get("/auth/login", nil), "alice").page(t, http.StatusOK)
	for _, header := range []http.Header{
		{"Sec-Fetch-Site": {"cross-site"}}, {"Sec-Fetch-Site": {"same-site"}}, {"Origin": {"https://evil.example.com"}}, {"Origin": {"null"}},
	} {
		b.header = header
		b.do(http.MethodPost, "/auth/logout", "", "").page(t, http.StatusForbidden)
		b.post("/auth/logout", url.Values{"return_to": {"/"}}).page(t, http.StatusForbidden)
	}
	require.Len(t, h.sessions.cookies, 1)
	b.header = http.Header{"Sec-Fetch-Site": {"same-origin"}, "Origin": {"null"}}
	b.post("/auth/logout", nil).page(t, http.StatusOK)
	require.Empty(t, h.sessions.cookies)
}

func TestLogout_keepsTheCookieWhileItCannotEndTheSession(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	b := h.browser(t)
	b.logIn(b.get("/auth/login", nil), "alice").page(t, http.StatusOK)
	h.sessions.fails = unavailable("kcp is unavailable")
	b.post("/auth/logout", nil).page(t, http.StatusServiceUnavailable)
	require.Len(t, b.cookies, 1)
}

func TestHandler_withoutAProviderIsNotThere(t *testing.T) {
	t.Parallel()
	r := chi.NewRouter()
	r.NotFound(httpapi.NotFound)
	(&login.Handler{}).Mount(r)
	b := (&hub{http: apitest.AsDocumented(r)}).browser(t)
	for _, path := range []string{"/auth/authorize", "/auth/callback", "/auth/login", "/auth/device/verify", "/auth/device/login"} {
		require.Contains(t, b.get(path, nil).page(t, http.StatusNotFound), "This hub has no identity provider")
	}
	for _, path := range []string{"/auth/logout", "/auth/device/verify"} {
		b.post(path, nil).page(t, http.StatusNotFound)
	}
	for _, path := range []string{"/auth/token", "/auth/device", "/auth/revoke"} {
		require.Contains(t, b.post(path, nil).oauthError(t, http.StatusNotFound, "invalid_request"), "no identity provider")
	}
	a := b.get("/.well-known/oauth-authorization-server", nil)
	require.Equal(t, http.StatusNotFound, a.code)
	require.Contains(t, a.body, "no identity provider")
}

// Browsers that do not send Sec-Fetch-Site are compared by Origin, which is the hub's own URL.
func TestLogout_worksBehindAProxyThatChangesHost(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	for origin, want := range map[string]int{hubURL: http.StatusOK, "https://evil.example.com": http.StatusForbidden} {
		r := httptest.NewRequest(http.MethodPost, "https://10.0.0.1:8443/auth/logout", http.NoBody)
		r.Header.Set("Origin", origin)
		w := httptest.NewRecorder()
		h.http.ServeHTTP(w, r)
		require.Equal(t, want, w.Code, origin)
	}
}

// A sign-out everywhere ends the logins that wait, and the session tells which began before it.
func TestLogin_tellsWhenItBegan(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	portal, computer, device := h.browser(t), h.browser(t), h.browser(t)
	h.start(t, "server-1")
	begun := portal.get("/auth/login", nil)
	continued, confirmed := computer.asked("alice").formOf(t, "continue"), device.confirming("alice")
	h.clock.SetTime(now.Add(time.Minute))
	portal.logIn(begun, "alice").page(t, http.StatusOK)
	computer.post("/auth/authorize", continued).location(t)
	device.post("/auth/device/verify", confirmed).page(t, http.StatusOK)
	require.Len(t, h.sessions.logins, 2)
	for _, l := range append(h.sessions.logins, *h.sessions.devices["BCDF-GHJK"].answered) {
		require.Equal(t, now, l.BeganAt.UTC(), l.Client)
	}
	static := newHubWith(t, nil, staticTokens)
	static.browser(t).post("/auth/token-login", url.Values{"token": {"token-of-alice"}}).location(t)
	require.Equal(t, now, static.sessions.logins[0].BeganAt.UTC())
}

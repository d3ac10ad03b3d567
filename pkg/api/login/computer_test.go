package login_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/api/login"
)

// asked begins the login of a command line and returns the page that asks about the computer.
func (b *browser) asked(person string) answer {
	b.t.Helper()
	return b.callback(b.get("/auth/authorize", authorization()), person)
}

// A link to /auth/authorize can name the port of any program on the computer, and the person can
// have a session at the identity provider.
func TestAuthorize_givesNoCodeWithoutAClick(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	b := h.browser(t)
	asked := b.asked("alice")
	page := asked.page(t, http.StatusOK)
	for _, shown := range []string{"Alice", "laptop", "192.0.2.1", "127.0.0.1:41234", ">Continue<", ">Cancel<"} {
		require.Contains(t, page, shown)
	}
	require.Equal(t, "default-src 'none'; style-src 'self'; form-action 'self' http://127.0.0.1:41234; frame-ancestors 'none'; base-uri 'none'",
		asked.header.Get("Content-Security-Policy"))
	require.Empty(t, h.sessions.logins)
	require.Empty(t, h.events)
	require.Equal(t, []string{"alice"}, h.kept, "some providers have ended the older grant")
	// Nor does asking again.
	b.get("/auth/callback", url.Values{"state": {""}, "code": {"alice"}}).page(t, http.StatusBadRequest)
	b.get("/auth/authorize", nil).page(t, http.StatusBadRequest)
	require.Empty(t, h.sessions.logins)

	to := b.post("/auth/authorize", asked.formOf(t, "continue")).location(t)
	require.NotEmpty(t, to.Query().Get("code"))
	require.Len(t, h.sessions.logins, 1)
}

func TestAuthorize_asksEachTime(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	b := h.browser(t)
	// What a browser says of an address that a person types or another program opens.
	b.header = http.Header{"Sec-Fetch-Site": {"none"}, "Sec-Fetch-User": {"?1"}, "Sec-Fetch-Dest": {"document"}, "Sec-Fetch-Mode": {"navigate"}}
	for range 3 {
		asked := b.asked("alice")
		b.header.Set("Sec-Fetch-Site", "same-origin")
		b.post("/auth/authorize", asked.formOf(t, "continue")).location(t)
		b.header.Set("Sec-Fetch-Site", "none")
	}
}

func TestAuthorize_asksAboutAnIPv6Listener(t *testing.T) {
	t.Parallel()
	b := newHub(t).browser(t)
	query := authorization()
	query.Set("redirect_uri", "http://[::1]:41234/callback")
	asked := b.callback(b.get("/auth/authorize", query), "alice")
	require.Contains(t, asked.page(t, http.StatusOK), "[::1]:41234")
	require.Contains(t, asked.header.Get("Content-Security-Policy"), "form-action 'self' http:;")
	require.Equal(t, "[::1]:41234", b.post("/auth/authorize", asked.formOf(t, "continue")).location(t).Host)
}

func TestAuthorize_showsAHostileDescriptionAsText(t *testing.T) {
	t.Parallel()
	b := newHub(t).browser(t)
	query := authorization()
	query.Set("description", "<script>alert(1)</script>\u202e\"'")
	page := b.callback(b.get("/auth/authorize", query), "alice").page(t, http.StatusOK)
	require.Contains(t, page, "&lt;script&gt;alert(1)&lt;/script&gt;&#34;&#39;")
	query.Del("description")
	require.Contains(t, b.callback(b.get("/auth/authorize", query), "alice").page(t, http.StatusOK), "It did not say its name")
}

func TestAuthorize_isCancelledByThePerson(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	b := h.browser(t)
	asked := b.asked("alice")
	to := b.post("/auth/authorize", asked.formOf(t, "cancel")).location(t)
	require.Equal(t, "127.0.0.1:41234", to.Host)
	require.Equal(t, "access_denied", to.Query().Get("error"))
	require.Contains(t, to.Query().Get("error_description"), "cancelled")
	require.Empty(t, b.cookies)
	require.Empty(t, h.sessions.logins)
	require.Equal(t, []login.Event{{Stage: h.events[0].Stage, Action: "login cli", Code: http.StatusForbidden}}, h.events)
	b.post("/auth/authorize", asked.formOf(t, "continue")).page(t, http.StatusBadRequest)
	require.Empty(t, h.sessions.logins)
}

func TestAuthorize_refusesAForgedConfirmation(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.start(t, "server-1")
	mallory := h.browser(t)
	his := mallory.asked("bob").formOf(t, "continue")
	for name, send := range map[string]func(b *browser) answer{
		"without a login":    func(b *browser) answer { return b.post("/auth/authorize", his) },
		"of another browser": func(b *browser) answer { b.asked("alice"); return b.post("/auth/authorize", his) },
		"before the provider": func(b *browser) answer {
			b.get("/auth/authorize", authorization())
			return b.post("/auth/authorize", his)
		},
		"of a device": func(b *browser) answer { return b.post("/auth/authorize", b.confirming("alice")) },
		"without the form": func(b *browser) answer {
			b.asked("alice")
			return b.post("/auth/authorize", url.Values{"decision": {"continue"}})
		},
		"without a decision": func(b *browser) answer { f := b.asked("alice").formOf(t, ""); return b.post("/auth/authorize", f) },
		"in the URL": func(b *browser) answer {
			f := b.asked("alice").formOf(t, "continue")
			return b.post("/auth/authorize?"+f.Encode(), f)
		},
		"to the device's page": func(b *browser) answer { return b.post("/auth/device/verify", b.asked("alice").formOf(t, "confirm")) },
	} {
		t.Run(name, func(t *testing.T) { send(h.browser(t)).page(t, http.StatusBadRequest) })
	}
	require.Empty(t, h.sessions.logins)
	mallory.post("/auth/authorize", his).location(t)
}

func TestAuthorize_isNotContinuedByOtherSites(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	b := h.browser(t)
	form := b.asked("alice").formOf(t, "continue")
	for _, header := range []http.Header{
		{"Sec-Fetch-Site": {"cross-site"}}, {"Sec-Fetch-Site": {"same-site"}}, {"Origin": {"https://evil.example.com"}}, {"Origin": {"null"}},
	} {
		b.header = header
		b.post("/auth/authorize", form).page(t, http.StatusForbidden)
	}
	require.Empty(t, h.sessions.logins)
	b.header = http.Header{"Sec-Fetch-Site": {"same-origin"}}
	b.post("/auth/authorize", form).location(t)
}

func TestAuthorize_doesNotBeginInsideOfAPage(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	b := h.browser(t)
	for _, dest := range []string{"image", "iframe", "frame", "object", "embed", "script", "empty"} {
		b.header = http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Dest": {dest}}
		b.get("/auth/authorize", authorization()).page(t, http.StatusBadRequest)
	}
	require.Empty(t, h.provider.begun)
	require.Empty(t, b.cookies)
	b.header.Set("Sec-Fetch-Dest", "document")
	b.get("/auth/authorize", authorization()).location(t)
}

// Somebody who kept the cookie and the form gets no second code, on any replica.
func TestAuthorize_refusesAReplayOfTheClick(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	b := h.browser(t)
	form := b.asked("alice").formOf(t, "continue")
	cookie := b.cookies[loginCookie]
	b.post("/auth/authorize", form).location(t)
	b.post("/auth/authorize", form).page(t, http.StatusBadRequest)
	b.cookies[loginCookie] = cookie
	to := b.post("/auth/authorize", form).location(t)
	require.Equal(t, "access_denied", to.Query().Get("error"))
	require.Empty(t, to.Query().Get("code"))
	require.Len(t, h.sessions.logins, 1)
	require.Equal(t, now, h.sessions.logins[0].BeganAt.UTC())
}

// The registration of the person can change while the page is open.
func TestAuthorize_looksAtThePersonAgain(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	b := h.browser(t)
	form := b.asked("alice").formOf(t, "continue")
	h.people["alice"] = h.people["rejected"]
	require.Equal(t, "access_denied", b.post("/auth/authorize", form).location(t).Query().Get("error"))
	require.Empty(t, h.sessions.logins)
}

package login_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/api/login"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// start begins a device login and returns the form that polls.
func (h *hub) start(t testing.TB, description string) url.Values {
	t.Helper()
	a := h.browser(t).post("/auth/device", url.Values{"client_id": {"kedge-cli"}, "description": {description}})
	require.Equal(t, http.StatusOK, a.code, a.body)
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(a.body), &got))
	require.Equal(t, hubURL+"/auth/device/verify", got["verification_uri"])
	require.Equal(t, hubURL+"/auth/device/verify?user_code=BCDF-GHJK", got["verification_uri_complete"])
	require.Equal(t, "BCDF-GHJK", got["user_code"])
	require.Equal(t, 600.0, got["expires_in"])
	require.Equal(t, 5.0, got["interval"])
	return url.Values{"client_id": {"kedge-cli"}, "grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "device_code": {got["device_code"].(string)}}
}

// typed types a code and begins the login of a device with it.
func (b *browser) typed(code string) answer {
	b.t.Helper()
	require.Contains(b.t, b.enter(code).page(b.t, http.StatusOK), `href="/auth/device/login"`)
	return b.get("/auth/device/login", nil)
}

// enter types a code.
func (b *browser) enter(code string) answer {
	b.t.Helper()
	return b.post("/auth/device/verify", url.Values{"user_code": {code}})
}

// confirming lets a person log in for the code and returns the form of the page.
func (b *browser) confirming(person string) url.Values {
	b.t.Helper()
	return b.logIn(b.typed("BCDF-GHJK"), person).formOf(b.t, "confirm")
}

func TestDevice_isConfirmedByThePerson(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	poll := h.start(t, "server-1")
	h.browser(t).post("/auth/token", poll).oauthError(t, http.StatusBadRequest, "authorization_pending")
	b := h.browser(t)
	require.Contains(t, b.get("/auth/device/verify", nil).page(t, http.StatusOK), `<label for="user_code">`)
	page := b.enter("BCDF-GHJK").page(t, http.StatusOK)
	require.Contains(t, page, `<bdi>BCDF-GHJK</bdi>`)
	require.NotContains(t, page, "server-1", "what asks is shown after the login only")
	require.Equal(t, page, b.enter("bcdfghjk").page(t, http.StatusOK))
	answer := b.confirming("alice")
	h.browser(t).post("/auth/token", poll).oauthError(t, http.StatusBadRequest, "authorization_pending")
	require.Contains(t, b.post("/auth/device/verify", answer).page(t, http.StatusOK), "logged in as Alice")
	require.Empty(t, b.cookies)
	require.Equal(t, both(login.Event{User: "alice", Issuer: "https://idp.example.com", Action: "confirm device", Code: http.StatusOK}), h.events)
	a := h.browser(t).post("/auth/token", poll)
	require.Equal(t, http.StatusOK, a.code, a.body)
	require.Contains(t, a.body, "id-token-of-alice")
	b.post("/auth/device/verify", answer).page(t, http.StatusBadRequest)
}

func TestDevice_isDeniedByThePerson(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	poll := h.start(t, "server-1")
	b := h.browser(t)
	answer := b.confirming("alice")
	answer.Set("decision", "deny")
	require.Contains(t, b.post("/auth/device/verify", answer).page(t, http.StatusOK), "not logged in")
	h.browser(t).post("/auth/token", poll).oauthError(t, http.StatusBadRequest, "access_denied")
}

func TestDevice_showsAHostileDescriptionAsText(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.start(t, "<script>alert(1)</script>\u202e\"'")
	b := h.browser(t)
	page := b.logIn(b.typed("BCDF-GHJK"), "alice").page(t, http.StatusOK)
	require.Contains(t, page, "&lt;script&gt;alert(1)&lt;/script&gt;&#34;&#39;")
	require.Contains(t, page, "192.0.2.1")
}

func TestDevice_refusesAForgedConfirmation(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	poll := h.start(t, "server-1")
	mallory, alice := h.browser(t), h.browser(t)
	hers := mallory.confirming("bob")
	for name, send := range map[string]func(b *browser) answer{
		"without a login":    func(b *browser) answer { clear(b.cookies); return b.post("/auth/device/verify", hers) },
		"of another browser": func(b *browser) answer { b.confirming("alice"); return b.post("/auth/device/verify", hers) },
		"without the form": func(b *browser) answer {
			b.confirming("alice")
			return b.post("/auth/device/verify", url.Values{"decision": {"confirm"}})
		},
		"without a decision": func(b *browser) answer {
			f := b.confirming("alice")
			f.Del("decision")
			return b.post("/auth/device/verify", f)
		},
		"with the wrong cookie": func(b *browser) answer {
			b.typed("BCDF-GHJK")
			return b.post("/auth/device/verify", hers)
		},
		"in the URL": func(b *browser) answer {
			f := b.confirming("alice")
			return b.post("/auth/device/verify?"+f.Encode(), f)
		},
		"given twice": func(b *browser) answer {
			f := b.confirming("alice")
			f.Add("decision", "deny")
			return b.post("/auth/device/verify", f)
		},
	} {
		t.Run(name, func(t *testing.T) { send(alice).page(t, http.StatusBadRequest) })
	}
	form := alice.confirming("alice")
	for _, header := range []http.Header{{"Sec-Fetch-Site": {"cross-site"}}, {"Origin": {"https://evil.example.com"}}} {
		alice.header = header
		alice.post("/auth/device/verify", form).page(t, http.StatusForbidden)
	}
	h.browser(t).post("/auth/token", poll).oauthError(t, http.StatusBadRequest, "authorization_pending")
	alice.header = http.Header{"Sec-Fetch-Site": {"same-origin"}}
	alice.post("/auth/device/verify", form).page(t, http.StatusOK)
}

func TestDevice_theConfirmationIsNoCallback(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.start(t, "server-1")
	b := h.browser(t)
	b.confirming("alice")
	b.get("/auth/callback", url.Values{"state": {""}, "code": {"bob"}}).page(t, http.StatusBadRequest)
}

// What a stranger learns about a code does not depend on it, and costs no look-up.
func TestDevice_tellsStrangersNothingAboutACode(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.start(t, "server-1")
	known, unknown := h.browser(t).enter("BCDF-GHJK").page(t, http.StatusOK), h.browser(t).enter("ZZZZ-ZZZZ").page(t, http.StatusOK)
	require.Equal(t, known, strings.ReplaceAll(unknown, "ZZZZ-ZZZZ", "BCDF-GHJK"))
	for _, code := range []string{"BCDF-GHJK", "ZZZZ-ZZZZ"} {
		h.browser(t).typed(code).location(t)
	}
	require.Zero(t, h.sessions.lookups)
	page := h.browser(t).enter(`"><script>`+strings.Repeat("x", 1_000)).page(t, http.StatusOK)
	require.NotContains(t, page, strings.Repeat("X", 20))
	require.Contains(t, h.browser(t).get("/auth/device/verify", nil).page(t, http.StatusOK), `<label for="user_code">`)
	for _, none := range []string{"", "1234"} {
		b := h.browser(t)
		require.Contains(t, b.enter(none).page(t, http.StatusBadRequest), `<label for="user_code">`)
		require.Empty(t, b.cookies)
	}
}

// Somebody mails a link with the code of a device of their own. Nothing of it reaches the page that lets
// the device in: the person would have to type the code of another terminal.
func TestDevice_isNotTakenOverByAMailedLink(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	poll := h.start(t, "the computer of mallory")
	alice, link := h.browser(t), url.Values{"user_code": {"BCDF-GHJK"}}
	for _, site := range []string{"", "none", "cross-site"} {
		alice.header = http.Header{}
		if site != "" {
			alice.header.Set("Sec-Fetch-Site", site)
		}
		page := alice.get("/auth/device/verify", link).page(t, http.StatusOK)
		require.Contains(t, page, `name="user_code" value=""`)
		require.NotContains(t, page, "BCDF")
		require.NotContains(t, page, "/auth/device/login")
		status := http.StatusBadRequest
		if site == "cross-site" {
			status = http.StatusForbidden
		}
		alice.get("/auth/device/login", link).page(t, status)
		require.Empty(t, alice.cookies)
	}
	// A code that she typed herself is not replaced by that of the link.
	alice.header = http.Header{}
	alice.enter("ZZZZ-ZZZZ").page(t, http.StatusOK)
	alice.get("/auth/device/verify", link).page(t, http.StatusOK)
	require.Contains(t, alice.callback(alice.get("/auth/device/login", link), "alice").page(t, http.StatusBadRequest), `value="ZZZZ-ZZZZ"`)
	h.browser(t).post("/auth/token", poll).oauthError(t, http.StatusBadRequest, "authorization_pending")
}

// A page of another site opens the login under a double click of the person: the second click would be
// on the button that lets the device in.
func TestDevice_isNotTakenOverByADoubleClick(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.start(t, "the computer of mallory")
	b := h.browser(t)
	for _, header := range []http.Header{{"Sec-Fetch-Site": {"cross-site"}}, {"Sec-Fetch-Site": {"same-site"}}, {"Origin": {"https://evil.example.com"}}} {
		b.header = header
		b.enter("BCDF-GHJK").page(t, http.StatusForbidden)
		require.Empty(t, b.cookies, "no other site types a code")
	}
	b.header = http.Header{"Sec-Fetch-Site": {"same-origin"}}
	b.enter("BCDF-GHJK").page(t, http.StatusOK)
	for _, site := range []string{"cross-site", "same-site", "?"} {
		b.header = http.Header{"Sec-Fetch-Site": {site}}
		b.get("/auth/device/login", nil).page(t, http.StatusForbidden)
	}
	b.header = http.Header{"Sec-Fetch-Site": {"same-origin"}}
	begun := b.get("/auth/device/login", nil)
	b.header = http.Header{}
	require.Contains(t, b.callback(begun, "alice").page(t, http.StatusOK), "the computer of mallory")
}

// What a code was typed for is no login that the provider can answer, and a login of another kind is no code.
func TestDevice_aTypedCodeIsNoLogin(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.start(t, "server-1")
	b := h.browser(t)
	b.enter("BCDF-GHJK").page(t, http.StatusOK)
	b.get("/auth/callback", url.Values{"state": {""}, "code": {"bob"}}).page(t, http.StatusBadRequest)
	b.post("/auth/device/verify", url.Values{"decision": {"confirm"}, "login": {""}}).page(t, http.StatusBadRequest)
	b.get("/auth/device/login", nil).location(t)
	b.get("/auth/device/login", nil).page(t, http.StatusBadRequest)
	b.get("/auth/login", nil).location(t)
	b.get("/auth/device/login", nil).page(t, http.StatusBadRequest)
}

// A login is good for one code, so that each that somebody guesses costs them a login.
func TestDevice_refusesUnknownAndUsedCodes(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	b := h.browser(t)
	begun := b.typed("ZZZZ-ZZZZ")
	cookie := b.cookies[loginCookie]
	page := b.logIn(begun, "alice").page(t, http.StatusBadRequest)
	require.Contains(t, page, "There is no such code")
	require.Contains(t, page, `value="ZZZZ-ZZZZ"`)
	require.Empty(t, b.cookies)
	require.Equal(t, 1, h.sessions.lookups)
	b.cookies[loginCookie] = cookie
	b.logIn(begun, "alice").page(t, http.StatusForbidden)
	require.Equal(t, 1, h.sessions.lookups)

	h.start(t, "server-1")
	alice, bob := h.browser(t), h.browser(t)
	late := bob.typed("bcdfghjk")
	first, second := alice.confirming("alice"), h.browser(t)
	answer := second.confirming("bob")
	alice.post("/auth/device/verify", first).page(t, http.StatusOK)
	require.Contains(t, second.post("/auth/device/verify", answer).page(t, http.StatusBadRequest), "answered already")
	require.Contains(t, bob.logIn(late, "bob").page(t, http.StatusBadRequest), "There is no such code")
}

func TestDevice_endsWhenThePersonIsRefused(t *testing.T) {
	t.Parallel()
	for _, person := range []string{"pending", "rejected"} {
		h := newHub(t)
		poll := h.start(t, "server-1")
		b := h.browser(t)
		b.logIn(b.typed("BCDF-GHJK"), person).page(t, http.StatusForbidden)
		h.browser(t).post("/auth/token", poll).oauthError(t, http.StatusBadRequest, "access_denied")
	}
}

func TestDevice_staysOpenWhenTheProviderFails(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	poll := h.start(t, "server-1")
	b := h.browser(t)
	begun := b.typed("BCDF-GHJK")
	h.provider.fails = unavailable("no answer")
	b.logIn(begun, "alice").page(t, http.StatusServiceUnavailable)
	h.browser(t).post("/auth/token", poll).oauthError(t, http.StatusBadRequest, "authorization_pending")
}

func TestDevice_refusesAnotherClient(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.browser(t).post("/auth/device", url.Values{"client_id": {"other"}}).oauthError(t, http.StatusUnauthorized, "invalid_client")
	h.browser(t).post("/auth/device", nil).oauthError(t, http.StatusBadRequest, "invalid_request")
	require.Empty(t, h.sessions.devices)
}

// Nobody has authenticated yet, and each device that asks is stored.
func TestDevice_refusesAFloodBeforeItIsStored(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.limits.fail.device = errs.New(errs.TooManyRequests, "too many requests of this kind")
	h.browser(t).post("/auth/device", url.Values{"client_id": {"kedge-cli"}}).oauthError(t, http.StatusTooManyRequests, "temporarily_unavailable")
	require.Empty(t, h.sessions.devices)
	require.Equal(t, http.StatusSeeOther, h.browser(t).get("/auth/login", nil).code, "other logins go on")

	h.limits.fail.device = nil
	h.start(t, "server-1")
}

// Some providers end the older grant of a person at a login, whatever becomes of it.
func TestDevice_keepsTheGrantOfALoginThatIsDenied(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.start(t, "server-1")
	b := h.browser(t)
	answer := b.confirming("alice")
	require.Equal(t, []string{"alice"}, h.kept, "before the person answers")
	answer.Set("decision", "deny")
	b.post("/auth/device/verify", answer).page(t, http.StatusOK)
}

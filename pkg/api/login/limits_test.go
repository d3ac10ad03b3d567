package login_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

func tooMany() error {
	e := errs.New(errs.TooManyRequests, "too many requests of this kind")
	e.RetryAfter = 3 * time.Second
	return e
}

func TestHandler_refusesAPeerThatAsksTooOften(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.limits.fail.stranger = tooMany()
	for _, path := range []string{"/auth/token", "/auth/device", "/auth/revoke"} {
		for _, form := range []url.Values{redemption("code"), {"token": {"forged"}, "refresh_token": {"forged"}, "device_code": {"forged"}}, nil} {
			a := h.browser(t).post(path, form)
			a.oauthError(t, http.StatusTooManyRequests, "temporarily_unavailable")
			require.Equal(t, "3", a.header.Get("Retry-After"))
		}
	}
	b := h.browser(t)
	b.cookies[sessionCookie], b.cookies[loginCookie], b.cookies[knownCookie] = "forged", "forged", "forged"
	for _, path := range []string{"/auth/authorize", "/auth/callback", "/auth/login", "/auth/device/verify", "/auth/device/login"} {
		b.get(path, authorization()).page(t, http.StatusTooManyRequests)
	}
	for _, path := range []string{"/auth/logout", "/auth/device/verify", "/auth/authorize"} {
		b.post(path, nil).page(t, http.StatusTooManyRequests)
	}
	require.Empty(t, h.provider.begun)
	require.Empty(t, h.limits.sessions)
	require.Equal(t, 17, h.limits.strangers)
}

// A flood of strangers, also one from the same address, leaves refreshes, logouts and logins that have
// begun alone.
func TestHandler_aFloodOfStrangersKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	code, b, c := h.browser(t).authorized("alice"), h.browser(t), h.browser(t)
	b.logIn(b.get("/auth/login", nil), "alice").page(t, http.StatusOK)
	poll, begun := h.start(t, "server-1"), c.get("/auth/authorize", authorization())
	confirming := h.browser(t)
	confirmation := confirming.confirming("bob")

	h.limits.fail.stranger = tooMany()
	h.browser(t).get("/auth/authorize", authorization()).page(t, http.StatusTooManyRequests)
	c.logIn(begun, "bob").location(t)
	require.Equal(t, http.StatusOK, h.browser(t).post("/auth/token", redemption(code)).code)
	secret := ""
	for secret = range h.sessions.secrets {
	}
	refresh := h.browser(t).post("/auth/token", url.Values{"client_id": {"kedge-cli"}, "grant_type": {"refresh_token"}, "refresh_token": {secret}})
	require.Equal(t, http.StatusOK, refresh.code, refresh.body)
	h.browser(t).post("/auth/token", poll).oauthError(t, http.StatusBadRequest, "authorization_pending")
	confirming.post("/auth/device/verify", confirmation).page(t, http.StatusOK)
	require.Equal(t, http.StatusOK, h.browser(t).post("/auth/revoke", url.Values{"token": {secret}}).code)
	// The cookies say that somebody was here before.
	b.logIn(b.get("/auth/authorize", authorization()), "alice").location(t)
	require.Len(t, c.cookies, 1)
	c.logIn(c.get("/auth/authorize", authorization()), "bob").location(t)
	require.Contains(t, h.limits.sessions, "person bob")
	require.Equal(t, 4, h.limits.exchanges, "two browsers ask the provider within the limit of their person")
	b.post("/auth/logout", nil).page(t, http.StatusOK)
	require.Contains(t, h.limits.sessions, "session "+secret)
	require.Contains(t, h.limits.persons, "alice")

	h.limits.fail.stranger, h.limits.fail.session = nil, tooMany()
	h.browser(t).post("/auth/revoke", url.Values{"token": {secret}}).oauthError(t, http.StatusTooManyRequests, "temporarily_unavailable")
	require.Equal(t, http.StatusOK, h.browser(t).post("/auth/revoke", url.Values{"token": {"unknown"}}).code)
}

// The cookie of a known browser is no credential, and it expires.
func TestHandler_knowsABrowserForAWhile(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	b := h.browser(t)
	b.logIn(b.get("/auth/authorize", authorization()), "alice").location(t)
	require.Len(t, b.cookies, 1)
	h.limits.fail.stranger = tooMany()
	b.get("/auth/login", nil).location(t)
	h.clock.SetTime(now.Add(90 * 24 * time.Hour))
	b.get("/auth/login", nil).page(t, http.StatusTooManyRequests)
	require.NotContains(t, b.cookies, sessionCookie)
}

// Everybody gets a login cookie. Codes that somebody invents cost requests to the identity provider.
func TestCallback_limitsWhatAsksTheProvider(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	b := h.browser(t)
	begun := b.get("/auth/authorize", authorization())
	h.limits.fail.exchange = tooMany()
	b.callback(begun, "alice").page(t, http.StatusTooManyRequests)
	require.Len(t, h.provider.begun, 1, "the provider was not asked")
	b.get("/auth/callback", url.Values{"state": {"another"}, "code": {"alice"}}).page(t, http.StatusBadRequest)
	require.Equal(t, 1, h.limits.exchanges)
	h.limits.fail.exchange = nil
	b.logIn(begun, "alice").location(t)
}

func TestCallback_limitsTheLoginsOfAPerson(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.limits.fail.person = tooMany()
	b := h.browser(t)
	to := b.logIn(b.get("/auth/authorize", authorization()), "alice").location(t)
	require.Equal(t, "temporarily_unavailable", to.Query().Get("error"))
	b.logIn(b.get("/auth/login", nil), "alice").page(t, http.StatusTooManyRequests)
	h.start(t, "server-1")
	b.logIn(b.typed("BCDF-GHJK"), "alice").page(t, http.StatusTooManyRequests)
	require.Zero(t, h.sessions.lookups, "nobody tries codes faster than that")
	require.Equal(t, []string{"alice", "alice", "alice"}, h.limits.persons)
	require.Empty(t, h.sessions.logins)
	require.NotContains(t, strings.Join(h.kept, " "), "alice")
}

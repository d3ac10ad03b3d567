package login_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/login"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// staticTokens knows the tokens "token-of-{person}".
func staticTokens(_ context.Context, token string) (*auth.Identity, bool, error) {
	name, ok := strings.CutPrefix(token, "token-of-")
	switch name {
	case "flood":
		return nil, false, errs.New(errs.TooManyRequests, "too many failed attempts")
	case "down":
		return nil, false, unavailable("kcp is unavailable")
	}
	return &auth.Identity{Kind: auth.Person, Issuer: auth.StaticIssuer, Subject: name, Username: "kedge:" + name, Credential: "hash of " + name}, ok, nil
}

func TestTokenLogin_makesASession(t *testing.T) {
	t.Parallel()
	for _, idp := range []login.Provider{nil, &provider{begun: map[string]auth.LoginRequest{}}} {
		h := newHubWith(t, idp, staticTokens)
		b := h.browser(t)
		require.Contains(t, b.get("/auth/token-login", url.Values{"return_to": {`/ui/?a="><b`}}).page(t, http.StatusOK), `value="/ui/?a=&#34;&gt;&lt;b"`)
		require.Contains(t, b.get("/auth/token-login", url.Values{"return_to": {"/ui/orgs?a=b"}}).page(t, http.StatusOK), `name="return_to" value="/ui/orgs?a=b"`)
		to := b.post("/auth/token-login", url.Values{"token": {"token-of-alice"}, "return_to": {"/ui/orgs?a=b"}}).location(t)
		require.Equal(t, "/ui/orgs?a=b", to.String())
		require.Equal(t, "alice", h.sessions.cookies[b.cookies[sessionCookie]])
		made := h.sessions.logins[0]
		require.Equal(t, v1alpha1.SessionPortal, made.Client)
		require.Empty(t, made.Grant.IDToken+made.Grant.RefreshToken)
		require.Equal(t, auth.SessionCredential(&auth.Identity{Credential: "hash of alice"}), made.Grant.Identity.Credential)
		require.Equal(t, now, made.Grant.Identity.ExpiresAt)
		require.Equal(t, both(login.Event{User: "alice", Issuer: auth.StaticIssuer, Action: "login portal", Code: http.StatusSeeOther}), h.events)
		require.Equal(t, "/", b.post("/auth/token-login", url.Values{"token": {"token-of-deleted"}}).location(t).String())
		b.post("/auth/logout", url.Values{"return_to": {"/ui/sign-in"}}).location(t)
		require.Empty(t, b.cookies)
	}
}

func TestTokenLogin_isTheLoginWithoutAProvider(t *testing.T) {
	t.Parallel()
	b := newHubWith(t, nil, staticTokens).browser(t)
	require.Contains(t, b.get("/auth/login", url.Values{"return_to": {"/ui/me"}}).page(t, http.StatusOK), `value="/ui/me"`)
	require.Contains(t, b.get("/auth/authorize", nil).page(t, http.StatusNotFound), "no identity provider")
	h := newHub(t)
	require.Equal(t, http.StatusNotFound, h.browser(t).get("/auth/token-login", nil).code, "a hub without static tokens")
	require.Equal(t, http.StatusNotFound, h.browser(t).post("/auth/token-login", url.Values{"token": {"token-of-alice"}}).code)
}

func TestTokenLogin_isRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		form url.Values
		code int
		text string
	}{
		"an unknown token": {url.Values{"token": {"secret"}}, http.StatusForbidden, "not known here"},
		"no token":         {nil, http.StatusBadRequest, "token: is missing"},
		"an open redirect": {url.Values{"token": {"token-of-alice"}, "return_to": {"//evil.example.com"}}, http.StatusBadRequest, "return_to"},
		"two tokens":       {url.Values{"token": {"token-of-alice", "token-of-bob"}}, http.StatusBadRequest, "more than once"},
		"pending":          {url.Values{"token": {"token-of-pending"}}, http.StatusForbidden, "waits for the approval"},
		"rejected":         {url.Values{"token": {"token-of-rejected"}}, http.StatusForbidden, "was rejected"},
		"a flood":          {url.Values{"token": {"token-of-flood"}}, http.StatusTooManyRequests, "Too many"},
		"kcp is down":      {url.Values{"token": {"token-of-down"}}, http.StatusServiceUnavailable, "unavailable"},
	} {
		b := newHubWith(t, nil, staticTokens).browser(t)
		page := b.post("/auth/token-login", c.form).page(t, c.code)
		require.Contains(t, page, c.text, name)
		require.NotContains(t, page, "secret", name)
		require.Empty(t, b.cookies, name)
	}
	b := newHubWith(t, nil, staticTokens).browser(t)
	b.do(http.MethodPost, "/auth/token-login?token=token-of-alice", "application/x-www-form-urlencoded", "").page(t, http.StatusBadRequest)
}

// Otherwise a page of another site could sign the person in as somebody else.
func TestTokenLogin_isNotForOtherSites(t *testing.T) {
	t.Parallel()
	b := newHubWith(t, nil, staticTokens).browser(t)
	for _, header := range []http.Header{{"Sec-Fetch-Site": {"cross-site"}}, {"Origin": {"https://evil.example.com"}}, {"Origin": {"null"}}} {
		b.header = header
		b.post("/auth/token-login", url.Values{"token": {"token-of-alice"}}).page(t, http.StatusForbidden)
		require.Empty(t, b.cookies)
	}
	b.header = http.Header{"Sec-Fetch-Site": {"same-origin"}}
	b.post("/auth/token-login", url.Values{"token": {"token-of-alice"}}).location(t)
}

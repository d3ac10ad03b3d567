package login_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/api/login"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

const form = "application/x-www-form-urlencoded"

func TestToken_refusesCodeInjectionWithoutItsVerifier(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	for name, change := range map[string]func(url.Values){
		"no verifier":      func(v url.Values) { v.Del("code_verifier") },
		"a short verifier": func(v url.Values) { v.Set("code_verifier", verifier[:42]) },
		"a strange one":    func(v url.Values) { v.Set("code_verifier", strings.Repeat("+", 43)) },
	} {
		v := redemption(h.browser(t).authorized("alice"))
		change(v)
		require.Contains(t, h.browser(t).post("/auth/token", v).oauthError(t, http.StatusBadRequest, "invalid_request"), "code_verifier", name)
	}
	v := redemption(h.browser(t).authorized("alice"))
	v.Set("code_verifier", verifier+"x")
	h.browser(t).post("/auth/token", v).oauthError(t, http.StatusBadRequest, "invalid_grant")
	v = redemption(h.browser(t).authorized("alice"))
	v.Set("redirect_uri", "http://127.0.0.1:1/callback")
	h.browser(t).post("/auth/token", v).oauthError(t, http.StatusBadRequest, "invalid_grant")
	v = redemption(h.browser(t).authorized("alice"))
	require.Equal(t, http.StatusOK, h.browser(t).post("/auth/token", v).code)
	h.browser(t).post("/auth/token", v).oauthError(t, http.StatusBadRequest, "invalid_grant")
}

func TestToken_refusesAMalformedRequest(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	good := redemption(h.browser(t).authorized("alice"))
	with := func(name string, values ...string) string {
		v := url.Values{}
		for key, value := range good {
			v[key] = value
		}
		v[name] = values
		return v.Encode()
	}
	for name, c := range map[string]struct {
		target, contentType, body string
		status                    int
		code                      string
	}{
		"JSON":                    {"/auth/token", "application/json", `{}`, http.StatusUnsupportedMediaType, "invalid_request"},
		"no content type":         {"/auth/token", "", good.Encode(), http.StatusUnsupportedMediaType, "invalid_request"},
		"another charset":         {"/auth/token", form + "; charset=utf-16", good.Encode(), http.StatusUnsupportedMediaType, "invalid_request"},
		"secrets in the URL":      {"/auth/token?" + good.Encode(), form, "", http.StatusBadRequest, "invalid_request"},
		"nothing":                 {"/auth/token", form, "", http.StatusBadRequest, "invalid_request"},
		"broken escapes":          {"/auth/token", form, "%zz", http.StatusBadRequest, "invalid_request"},
		"a parameter twice":       {"/auth/token", form, with("code", "a", "a"), http.StatusBadRequest, "invalid_request"},
		"an unknown one twice":    {"/auth/token", form, with("x", "a", "a"), http.StatusBadRequest, "invalid_request"},
		"a body bomb":             {"/auth/token", form, with("x", strings.Repeat("a", 64<<10)), http.StatusRequestEntityTooLarge, "invalid_request"},
		"no client":               {"/auth/token", form, with("client_id"), http.StatusBadRequest, "invalid_request"},
		"a mixed-up client":       {"/auth/token", form, with("client_id", "kedge-portal"), http.StatusUnauthorized, "invalid_client"},
		"no grant type":           {"/auth/token", form, with("grant_type"), http.StatusBadRequest, "invalid_request"},
		"a password grant":        {"/auth/token", form, with("grant_type", "password"), http.StatusBadRequest, "unsupported_grant_type"},
		"no code":                 {"/auth/token", form, with("code"), http.StatusBadRequest, "invalid_request"},
		"no redirect":             {"/auth/token", form, with("redirect_uri"), http.StatusBadRequest, "invalid_request"},
		"a refresh of nothing":    {"/auth/token", form, with("grant_type", "refresh_token"), http.StatusBadRequest, "invalid_request"},
		"a device without a code": {"/auth/token", form, with("grant_type", "urn:ietf:params:oauth:grant-type:device_code"), http.StatusBadRequest, "invalid_request"},
	} {
		t.Run(name, func(t *testing.T) {
			h.browser(t).do(http.MethodPost, c.target, c.contentType, c.body).oauthError(t, c.status, c.code)
		})
	}
	require.Equal(t, http.StatusOK, h.browser(t).do(http.MethodPost, "/auth/token", form+"; charset=UTF-8", with("unknown", "1")).code)
}

func TestToken_refreshes(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	require.Equal(t, http.StatusOK, h.browser(t).post("/auth/token", redemption(h.browser(t).authorized("alice"))).code)
	for secret := range h.sessions.secrets {
		v := url.Values{"client_id": {"kedge-cli"}, "grant_type": {"refresh_token"}, "refresh_token": {secret}}
		require.Equal(t, http.StatusOK, h.browser(t).post("/auth/token", v).code)
		v.Set("refresh_token", secret+"x")
		h.browser(t).post("/auth/token", v).oauthError(t, http.StatusBadRequest, "invalid_grant")
	}
}

func TestToken_saysWhatIsUnavailable(t *testing.T) {
	t.Parallel()
	v := url.Values{"client_id": {"kedge-cli"}, "grant_type": {"refresh_token"}, "refresh_token": {"x"}}
	for name, c := range map[string]struct {
		kcp, sessions error
		after         string
	}{
		"kcp":                 {kcp: unavailable("kcp is unavailable"), after: "7"},
		"the provider":        {sessions: unavailable("the provider is unavailable"), after: "7"},
		"a conflict":          {sessions: errs.New(errs.Timeout, "kcp did not answer in time"), after: "2"},
		"an unexpected error": {sessions: http.ErrNoCookie, after: "2"},
		"an internal error":   {sessions: errs.Wrap(errs.Internal, http.ErrNoCookie, "detail"), after: "2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			h.kcp, h.sessions.fails = c.kcp, c.sessions
			a := h.browser(t).post("/auth/token", v)
			text := a.oauthError(t, http.StatusServiceUnavailable, "temporarily_unavailable")
			require.Equal(t, c.after, a.header.Get("Retry-After"))
			require.NotContains(t, text, http.ErrNoCookie.Error())
			require.NotContains(t, text, "detail")
		})
	}
}

func TestRevoke_answersAlike(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.browser(t).post("/auth/token", redemption(h.browser(t).authorized("alice")))
	require.Len(t, h.sessions.secrets, 1)
	unknown := h.browser(t).post("/auth/revoke", url.Values{"client_id": {"kedge-cli"}, "token": {"unknown"}, "token_type_hint": {"access_token"}})
	require.Equal(t, unknown, h.browser(t).post("/auth/revoke", url.Values{"token": {"unknown"}}), "the secret is enough")
	require.Equal(t, http.StatusOK, unknown.code)
	for secret := range h.sessions.secrets {
		h.browser(t).post("/auth/revoke", url.Values{"client_id": {"other"}, "token": {secret}}).oauthError(t, http.StatusUnauthorized, "invalid_client")
		h.browser(t).post("/auth/revoke", url.Values{"client_id": {"kedge-cli"}}).oauthError(t, http.StatusBadRequest, "invalid_request")
		require.Len(t, h.sessions.secrets, 1)
		require.Equal(t, unknown, h.browser(t).post("/auth/revoke", url.Values{"client_id": {"kedge-cli"}, "token": {secret}}))
	}
	require.Empty(t, h.sessions.secrets)
	require.Equal(t, login.Event{Stage: audit.StageOutcome, User: "alice", Action: "logout cli", Code: http.StatusOK, Session: "session-of-alice"}, h.events[len(h.events)-1])
	h.sessions.fails = unavailable("kcp is unavailable")
	h.browser(t).post("/auth/revoke", url.Values{"client_id": {"kedge-cli"}, "token": {"x"}}).oauthError(t, http.StatusServiceUnavailable, "temporarily_unavailable")
}

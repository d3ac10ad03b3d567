package login_test

import (
	"encoding/json"
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

func TestMetadata_namesTheEndpoints(t *testing.T) {
	t.Parallel()
	a := newHub(t).browser(t).get("/.well-known/oauth-authorization-server", nil)
	require.Equal(t, http.StatusOK, a.code, a.body)
	require.JSONEq(t, `{
		"issuer": "https://hub.example.com:9443",
		"authorization_endpoint": "https://hub.example.com:9443/auth/authorize",
		"token_endpoint": "https://hub.example.com:9443/auth/token",
		"device_authorization_endpoint": "https://hub.example.com:9443/auth/device",
		"revocation_endpoint": "https://hub.example.com:9443/auth/revoke",
		"response_types_supported": ["code"], "response_modes_supported": ["query"],
		"grant_types_supported": ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
		"code_challenge_methods_supported": ["S256"],
		"token_endpoint_auth_methods_supported": ["none"], "revocation_endpoint_auth_methods_supported": ["none"],
		"authorization_response_iss_parameter_supported": true
	}`, a.body)
}

func TestCommandLine_logsInWithACode(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	b := h.browser(t)
	code := b.authorized("alice")
	require.NotContains(t, b.cookies, loginCookie, "the login cookie is gone")
	require.Len(t, h.sessions.logins, 1)
	l := h.sessions.logins[0]
	require.Equal(t, v1alpha1.SessionCLI, l.Client)
	require.Equal(t, "laptop", l.Description)
	require.Equal(t, "alice", l.User.Name)
	require.Equal(t, "refresh-token-of-alice", l.Grant.RefreshToken)
	require.Equal(t, both(login.Event{User: "alice", Issuer: "https://idp.example.com", Action: "login cli", Code: http.StatusSeeOther}), h.events)

	a := h.browser(t).post("/auth/token", redemption(code))
	require.Equal(t, http.StatusOK, a.code, a.body)
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(a.body), &got))
	require.Equal(t, "id-token-of-alice", got["access_token"])
	require.Equal(t, "Bearer", got["token_type"])
	require.Equal(t, 3600.0, got["expires_in"])
	require.Contains(t, h.sessions.secrets, got["refresh_token"])
}

func TestAuthorize_neverRedirectsAMalformedRequest(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	with := func(name string, values ...string) url.Values {
		v := authorization()
		v[name] = values
		return v
	}
	for name, query := range map[string]url.Values{
		"no client":               with("client_id"),
		"another client":          with("client_id", "kedge-portal"),
		"no response type":        with("response_type"),
		"an implicit grant":       with("response_type", "token"),
		"no challenge":            with("code_challenge"),
		"a short challenge":       with("code_challenge", challenge()[1:]),
		"a challenge with spaces": with("code_challenge", strings.Repeat(" ", 43)),
		"no method":               with("code_challenge_method"),
		"a plain challenge":       with("code_challenge_method", "plain"),
		"no state":                with("state"),
		"a long state":            with("state", strings.Repeat("s", 513)),
		"a state with a newline":  with("state", "a\r\nSet-Cookie: a=b"),
		"an open redirect":        with("redirect_uri", "https://evil.example.com/callback"),
		"no redirect":             with("redirect_uri"),
		"two redirects":           with("redirect_uri", loopback, "https://evil.example.com/callback"),
		"the same one twice":      with("redirect_uri", loopback, loopback),
		"two unknown ones":        with("nonsense", "a", "b"),
		"broken UTF-8":            with("description", "\xff"),
	} {
		b := h.browser(t)
		b.get("/auth/authorize", query).page(t, http.StatusBadRequest)
		require.Empty(t, b.cookies, name)
	}
	for _, raw := range []string{"%zz", "a=b;c=d", authorization().Encode() + "&client_id=kedge-cli"} {
		h.browser(t).do(http.MethodGet, "/auth/authorize?"+raw, "", "").page(t, http.StatusBadRequest)
	}
	require.Empty(t, h.provider.begun)
	require.Equal(t, "idp.example.com", h.browser(t).get("/auth/authorize", with("nonsense", "a")).location(t).Host)
}

func TestAuthorize_saysThatTheProviderIsUnavailable(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.provider.fails = unavailable("the identity provider does not answer")
	a := h.browser(t).get("/auth/authorize", authorization())
	require.Contains(t, a.page(t, http.StatusServiceUnavailable), "The identity provider does not answer.")
	require.Equal(t, "7", a.header.Get("Retry-After"))
}

func TestLogin_keepsTheLargestParametersInItsCookie(t *testing.T) {
	t.Parallel()
	for _, char := range []string{"<", "\"", "x"} {
		h := newHub(t)
		b := h.browser(t)
		query := authorization()
		query.Set("state", strings.Repeat(char, 512))
		query.Set("description", strings.Repeat("\U0001F600", 128))
		require.Equal(t, query.Get("state"), b.logIn(b.get("/auth/authorize", query), "alice").location(t).Query().Get("state"))
		to := "/" + strings.Repeat(char, 1023)
		b.header.Set("User-Agent", query.Get("description"))
		got := b.logIn(b.get("/auth/login", url.Values{"return_to": {to}}), "alice")
		require.Equal(t, to, got.header.Get("Location"))
	}
}

func TestAuthorize_cleansTheDescription(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"laptop":                         "laptop",
		"  a\u202eb\x00\r\nc\u200b  ":    "abc",
		strings.Repeat("é", 200):         strings.Repeat("é", 128),
		"":                               "",
		`<img src=x onerror="alert(1)">`: `<img src=x onerror="alert(1)">`,
	} {
		h := newHub(t)
		b := h.browser(t)
		query := authorization()
		query.Set("description", given)
		b.logIn(b.get("/auth/authorize", query), "alice").location(t)
		require.Equal(t, want, h.sessions.logins[0].Description)
	}
}

func TestCallback_refusesAStateOfAnotherBrowser(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	mallory, alice := h.browser(t), h.browser(t)
	state := mallory.get("/auth/authorize", authorization()).location(t).Query().Get("state")
	// Mallory's answer of the provider in a browser without, and with, a login of its own.
	query := url.Values{"state": {state}, "code": {"bob"}}
	alice.get("/auth/callback", query).page(t, http.StatusBadRequest)
	begun := alice.get("/auth/authorize", authorization())
	alice.get("/auth/callback", query).page(t, http.StatusBadRequest)
	require.Empty(t, h.sessions.logins)
	// A link that somebody sends ends no login.
	alice.logIn(begun, "alice").location(t)
	require.NotContains(t, alice.cookies, loginCookie, "the login is over")
	mallory.onward(mallory.get("/auth/callback", query)).location(t)
}

func TestCallback_refusesAReplay(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	b := h.browser(t)
	begun := b.get("/auth/authorize", authorization())
	cookie := b.cookies[loginCookie]
	b.logIn(begun, "alice").location(t)
	b.logIn(begun, "alice").page(t, http.StatusBadRequest)
	// A cookie that was kept does not help: the provider's code is used up.
	b.cookies[loginCookie] = cookie
	to := b.logIn(begun, "alice").location(t)
	require.Equal(t, "access_denied", to.Query().Get("error"))
	require.Len(t, h.sessions.logins, 1)
}

func TestCallback_refusesAnExpiredOrForgedCookie(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	b := h.browser(t)
	begun := b.get("/auth/authorize", authorization())
	cookie := b.cookies[loginCookie]
	forged, err := h.keyring.Seal("device login", []byte(`{"kind":"cli","state":"x"}`))
	require.NoError(t, err)
	for _, value := range []string{"", "x", cookie[:len(cookie)-1], cookie + "A", strings.ToUpper(cookie), string(forged)} {
		b.cookies[loginCookie] = value
		b.logIn(begun, "alice").page(t, http.StatusBadRequest)
	}
	b.cookies[loginCookie] = cookie
	h.clock.SetTime(now.Add(10 * 60e9))
	b.logIn(begun, "alice").page(t, http.StatusBadRequest)
	h.clock.SetTime(now)
	b.cookies[loginCookie] = cookie
	b.logIn(begun, "alice").location(t)
}

func TestCallback_tellsTheCommandLineOfARefusal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		query      url.Values
		signUp     error
		exchange   error
		code, text string
		actor      string
	}{
		"refused by the person":   {query: url.Values{"error": {"access_denied"}}, code: "access_denied", text: "refused at the identity provider"},
		"an unknown error":        {query: url.Values{"error": {"login_required"}, "error_description": {"do \"it\"\n<b>"}}, code: "access_denied", text: "login_required (do 'it'<b>)"},
		"the provider is broken":  {query: url.Values{"error": {"server_error"}}, code: "server_error", text: "does not work"},
		"no code":                 {query: url.Values{}, code: "access_denied", text: "code: is missing"},
		"the provider is away":    {query: url.Values{"code": {"alice"}}, exchange: unavailable("no answer"), code: "temporarily_unavailable", text: "no answer"},
		"the code is refused":     {query: url.Values{"code": {"alice"}}, exchange: auth.ErrGrantRefused, code: "access_denied", text: "refused the code"},
		"a bad ID token":          {query: url.Values{"code": {"alice"}}, exchange: http.ErrNoCookie, code: "access_denied", text: "ID token is not valid"},
		"registration is closed":  {query: url.Values{"code": {"new"}}, signUp: errs.New(errs.Forbidden, "this hub takes nobody new"), code: "access_denied", text: "takes nobody new"},
		"kcp fails unexpectedly":  {query: url.Values{"code": {"new"}}, signUp: http.ErrNoCookie, code: "temporarily_unavailable", text: "not available"},
		"registration is pending": {query: url.Values{"code": {"pending"}}, code: "access_denied", text: "approval", actor: "pending"},
		"registration rejected":   {query: url.Values{"code": {"rejected"}}, code: "access_denied", text: "rejected", actor: "rejected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			b := h.browser(t)
			state := b.get("/auth/authorize", authorization()).location(t).Query().Get("state")
			h.signUpFails, h.provider.fails = c.signUp, c.exchange
			c.query.Set("state", state)
			to := b.get("/auth/callback", c.query).location(t)
			require.Equal(t, "127.0.0.1:41234", to.Host)
			require.Equal(t, c.code, to.Query().Get("error"))
			require.Contains(t, to.Query().Get("error_description"), c.text)
			require.NotContains(t, to.String(), http.ErrNoCookie.Error())
			require.Equal(t, "s t&a=te", to.Query().Get("state"))
			require.Equal(t, hubURL, to.Query().Get("iss"))
			require.Empty(t, to.Query().Get("code"))
			require.Empty(t, b.cookies)
			require.Empty(t, h.sessions.logins)
			require.Len(t, h.events, 1)
			require.Equal(t, c.actor, h.events[0].User)
			require.GreaterOrEqual(t, h.events[0].Code, 400)
		})
	}
}

func TestCallback_refusesAChangedUsername(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.people["alice"].Spec.RBACIdentity = "kedge:old-name"
	b := h.browser(t)
	to := b.logIn(b.get("/auth/authorize", authorization()), "alice").location(t)
	require.Equal(t, "access_denied", to.Query().Get("error"))
	require.Contains(t, to.Query().Get("error_description"), "another username")
	require.Empty(t, h.sessions.logins)
}

func TestLogin_isOpenToASoftDeletedPerson(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	require.NotEmpty(t, h.browser(t).authorized("deleted"))
}

package login_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/test/doubles/oidctest"
)

// newHubWithProvider returns a hub whose identity provider speaks OpenID Connect.
func newHubWithProvider(t *testing.T) (*hub, *oidctest.Provider) {
	t.Helper()
	k := clocktesting.NewFakeClock(now)
	p := oidctest.New(t, oidctest.Options{Clock: k})
	issuer, err := auth.NewOIDC(auth.OIDCConfig{
		IssuerURL: p.URL(), ClientID: oidctest.ClientID, CA: p.CA(), Scopes: []string{"openid"},
		UsernameClaim: "sub", UsernamePrefix: "kedge:", Clock: k, Metrics: prometheus.NewRegistry(),
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); issuer.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	require.Eventually(t, func() bool { return issuer.Err() == nil }, 10*time.Second, time.Millisecond)
	return newHubAt(t, issuer), p
}

// atProvider follows a redirect to the provider and returns what it sends the browser back with.
func atProvider(t *testing.T, p *oidctest.Provider, begun answer) url.Values {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, begun.location(t).String(), http.NoBody)
	require.NoError(t, err)
	response, err := p.Client().Do(r)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	back, err := response.Location()
	require.NoError(t, err)
	require.Equal(t, hubURL+"/auth/callback", "https://"+back.Host+back.Path)
	return back.Query()
}

func TestLogin_worksWithAnOpenIDProvider(t *testing.T) {
	t.Parallel()
	h, p := newHubWithProvider(t)
	b := h.browser(t)
	to := b.onward(b.get("/auth/callback", atProvider(t, p, b.get("/auth/authorize", authorization())))).location(t)
	require.Equal(t, http.StatusOK, h.browser(t).post("/auth/token", redemption(to.Query().Get("code"))).code)
	p.LogIn(oidctest.Claims{"sub": "bob"})
	b.get("/auth/callback", atProvider(t, p, b.get("/auth/login", nil))).page(t, http.StatusOK)
	require.Equal(t, "bob", h.sessions.cookies[b.cookies[sessionCookie]])
	p.LogIn(nil)
	to = b.get("/auth/callback", atProvider(t, p, b.get("/auth/authorize", authorization()))).location(t)
	require.Equal(t, "access_denied", to.Query().Get("error"))
}

func TestCallback_refusesAProvidersCodeOfAnotherLogin(t *testing.T) {
	t.Parallel()
	h, p := newHubWithProvider(t)
	mallory, alice := h.browser(t), h.browser(t)
	p.LogIn(oidctest.Claims{"sub": "bob"})
	stolen := atProvider(t, p, mallory.get("/auth/login", nil))
	p.LogIn(oidctest.Claims{"sub": "alice"})
	hers := atProvider(t, p, alice.get("/auth/login", nil))
	hers.Set("code", stolen.Get("code"))
	require.Contains(t, alice.get("/auth/callback", hers).page(t, http.StatusForbidden), "refused the code")
	require.Empty(t, alice.cookies)
	require.Empty(t, h.sessions.logins)
}

func TestCallback_saysThatTheProviderIsDown(t *testing.T) {
	t.Parallel()
	h, p := newHubWithProvider(t)
	cli, portal := h.browser(t), h.browser(t)
	one, two := atProvider(t, p, cli.get("/auth/authorize", authorization())), atProvider(t, p, portal.get("/auth/login", nil))
	p.SetDown(true)
	require.Equal(t, "temporarily_unavailable", cli.get("/auth/callback", one).location(t).Query().Get("error"))
	a := portal.get("/auth/callback", two)
	a.page(t, http.StatusServiceUnavailable)
	require.NotEmpty(t, a.header.Get("Retry-After"))
	require.Equal(t, p.URL(), "https://"+portal.get("/auth/login", nil).location(t).Host, "known endpoints go on")
}

package identity

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// replicas starts hubs behind one URL, which is that of the first.
func replicas(t *testing.T, issuer *framework.Dex, n int, change ...func(*server.Options)) (root string, hubs []*framework.Hub) {
	t.Helper()
	root = framework.NewRoot()
	url := ""
	for range n {
		hub := framework.StartHub(t, kcp, root, append([]func(*server.Options){framework.WithDex(t, issuer), func(o *server.Options) {
			if url == "" {
				url = "https://" + o.ListenAddress
			}
			o.ExternalURL = url
		}}, change...)...)
		hubs = append(hubs, hub)
	}
	return root, hubs
}

// at moves a URL of a hub to another replica.
func at(t *testing.T, hub *framework.Hub, location *url.URL) string {
	t.Helper()
	require.NotNil(t, location)
	u := *location
	u.Host = strings.TrimPrefix(hub.URL, "https://")
	return u.String()
}

// A login that begins on one replica comes back to a second, is redeemed at a third request
// on the first, and its token is good on both at once. The code works once.
func TestLogin_goesOnAtAnyReplica(t *testing.T) {
	t.Parallel()
	_, hubs := replicas(t, dex, 2)
	for _, hub := range hubs {
		ready(t, hub, dex.IDToken(t, framework.HubClient, "alice"))
	}
	b := framework.NewBrowser(t, dex.CAFile, hubs[0].CA, hubs[1].CA)
	b.HTTP.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if r.URL.Path == "/auth/callback" || r.URL.Scheme == "http" {
			return http.ErrUseLastResponse
		}
		return nil
	}
	l := framework.NewLogin()
	back := dex.LogIn(t, b, l.URL(hubs[0].Client), "alice")
	code := l.Code(t, b.Continue(t, b.Get(t, at(t, hubs[1], back.Location))))
	again := b.Get(t, at(t, hubs[0], back.Location))
	require.Equal(t, http.StatusBadRequest, again.Code, "the callback of a login that has ended")

	tokens := framework.TokensOf(t, l.Redeem(t, hubs[0].Client, code))
	for _, hub := range hubs {
		hub.Do(t, whoIs(tokens.Access), http.StatusOK)
	}
	next := framework.TokensOf(t, hubs[1].Refresh(t, tokens.Secret))
	require.NotEqual(t, tokens.Secret, next.Secret)
	require.Equal(t, next.Secret, framework.TokensOf(t, hubs[0].Refresh(t, tokens.Secret)).Secret, "parallel refreshes get one successor")

	replay := l.Redeem(t, hubs[1].Client, code)
	require.Equal(t, http.StatusBadRequest, replay.Code)
	require.Equal(t, "invalid_grant", replay.Text("error"))
	for _, hub := range hubs {
		ended(t, hub, next.Access)
		require.Equal(t, "invalid_grant", hub.Refresh(t, next.Secret).Text("error"), "a replayed code ends the session")
	}
}

// A login is refused with another browser's cookie, another state, or without the verifier.
func TestLogin_refusesWhatAnotherBegan(t *testing.T) {
	t.Parallel()
	hub := kcp.SharedWithDex(t, dex, 1)[0]
	ready(t, hub, dex.IDToken(t, framework.HubClient, "bob"))
	stopping := func() *framework.Browser {
		b := framework.NewBrowser(t, dex.CAFile, hub.CA)
		b.HTTP.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
			if r.URL.Path == "/auth/callback" || r.URL.Scheme == "http" {
				return http.ErrUseLastResponse
			}
			return nil
		}
		return b
	}
	victim, attacker := stopping(), stopping()
	l := framework.NewLogin()
	back := dex.LogIn(t, attacker, l.URL(hub.Client), "bob").Location.String()
	require.Equal(t, http.StatusBadRequest, victim.Get(t, back).Code, "without a login of its own")
	_ = dex.LogIn(t, victim, framework.NewLogin().URL(hub.Client), "alice")
	require.Equal(t, http.StatusBadRequest, victim.Get(t, back).Code, "with another login")

	code := l.Code(t, attacker.Continue(t, attacker.Get(t, back)))
	stolen := *l
	stolen.Verifier = framework.NewLogin().Verifier
	require.Equal(t, "invalid_grant", stolen.Redeem(t, hub.Client, code).Text("error"), "without the verifier")
	// The positive control.
	framework.TokensOf(t, hub.Refresh(t, dex.LogInAt(t, hub.Client, "bob").Secret))
}

// ended waits until a hub refuses the token of a session that has ended.
func ended(t *testing.T, hub *framework.Hub, token string) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		a := hub.Do(t, whoIs(token), http.StatusOK, http.StatusUnauthorized)
		return framework.Equal(http.StatusUnauthorized, a.Code)
	})
}

package identity

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// A flood of logins, and one of bad tokens, is refused with 429, while a person at the same
// address who is logged in works as before. Logins work again when the flood has ended.
func TestFloods_leaveTheLoggedInAlone(t *testing.T) {
	t.Parallel()
	hub := framework.StartHub(t, kcp, framework.NewRoot(), framework.WithDex(t, dex), func(o *server.Options) {
		o.Limits.LoginsPerPeer, o.Limits.FailedAuthenticationsPerPeer = 2, 2
	})
	ready(t, hub, dex.IDToken(t, framework.HubClient, "bob"))
	tokens := dex.LogInAt(t, hub.Client, "bob")
	hub.Do(t, whoIs(tokens.Access), http.StatusOK)
	calls := []call{}
	for i := range 100 {
		calls = append(calls, whoIs(tokens.Access), whoIs(fmt.Sprintf("bad-%d", i)), call{Method: http.MethodGet, Path: "/auth/device/verify"})
	}
	answers, err := framework.AtOnce([]*framework.Hub{hub}, calls)
	require.NoError(t, err)
	limited := [3]int{}
	for i, a := range answers {
		require.Less(t, a.Code, 500, "%s", a.Raw)
		if a.Code == http.StatusTooManyRequests {
			limited[i%3]++
			require.NotEmpty(t, a.Header.Get("Retry-After"))
		}
		if i%3 == 0 {
			require.Equal(t, http.StatusOK, a.Code, "%s", a.Raw)
		}
	}
	require.NotZero(t, limited[1], "bad tokens")
	require.NotZero(t, limited[2], "logins")
	require.NotZero(t, metric(t, hub, "kedge_limited_total"))
	framework.Eventually(t, framework.Long, func() error {
		a := hub.Do(t, call{Method: http.MethodGet, Path: "/auth/device/verify"}, http.StatusOK, http.StatusTooManyRequests)
		return framework.Equal(http.StatusOK, a.Code)
	})
}

// forwarded is a reverse proxy in front of the hub, for the client of one address.
type forwarded struct {
	next http.RoundTripper
	hub  *framework.Hub
	from string
}

func (f forwarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if "https://"+r.URL.Host == f.hub.URL {
		r = r.Clone(r.Context())
		r.Header.Set("X-Forwarded-For", f.from)
	}
	return f.next.RoundTrip(r)
}

// browserAt is a browser at an address behind the reverse proxy.
func browserAt(t *testing.T, hub *framework.Hub, from string) *framework.Browser {
	t.Helper()
	b := framework.NewBrowser(t, dex.CAFile, hub.CA)
	b.HTTP.Transport = forwarded{b.HTTP.Transport, hub, from}
	return b
}

// flood sends requests of strangers to /auth from 40 networks, until stop: six times as many as the limits of all of them let
// in. More of them would keep this machine busy and show nothing. It returns when each network has been refused.
func flood(t *testing.T, hub *framework.Hub) (stop func()) {
	t.Helper()
	networks := []string{}
	for i := range 10 {
		networks = append(networks, fmt.Sprintf("198.51.100.%d", i+1), fmt.Sprintf("203.0.113.%d", i+1),
			fmt.Sprintf("2001:db8:1:%x::1", i), fmt.Sprintf("2001:db8:%x::1", i+0x100))
	}
	form := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	requests := []call{
		{Method: http.MethodGet, Path: "/auth/device/verify?user_code=BCDF-GHJK"},
		{Method: http.MethodGet, Path: "/auth/callback?state=x&code=y"},
		{Method: http.MethodGet, Path: framework.NewLogin().URL(&framework.Client{})},
		{Method: http.MethodPost, Path: "/auth/token", Header: form, Body: "client_id=kedge-cli&grant_type=refresh_token&refresh_token=a.1.b"},
		{Method: http.MethodPost, Path: "/auth/revoke", Header: form, Body: "token=a.1.b"},
		{Method: http.MethodPost, Path: "/auth/device", Header: form, Body: "client_id=kedge-cli"},
		{Method: http.MethodPost, Path: "/auth/logout", Header: http.Header{"Sec-Fetch-Site": {"same-origin"}}},
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running, refused sync.WaitGroup
	refused.Add(len(networks))
	pace := time.NewTicker(4 * time.Millisecond)
	const connections = 4
	for connection := range connections {
		running.Go(func() {
			seen := map[string]bool{}
			for i := 0; ctx.Err() == nil; i++ {
				for n := connection; n < len(networks); n += connections {
					select {
					case <-pace.C:
					case <-ctx.Done():
						return
					}
					c := requests[i%len(requests)]
					c.Header = c.Header.Clone()
					if c.Header == nil {
						c.Header = http.Header{}
					}
					c.Header.Set("X-Forwarded-For", networks[n])
					a, err := hub.Try(c)
					if err == nil && a.Code == http.StatusTooManyRequests && !seen[networks[n]] {
						seen[networks[n]] = true
						refused.Done()
					}
				}
			}
		})
	}
	refused.Wait()
	return func() {
		cancel()
		running.Wait()
		pace.Stop()
	}
}

// Strangers from 40 networks do what they can. People who are logged in refresh and log out, people who
// were here before log in, one of them at an address that floods, and somebody new signs up.
func TestFloods_fromFortyNetworksKeepNobodyOut(t *testing.T) {
	t.Parallel()
	hub := framework.StartHub(t, kcp, framework.NewRoot(), framework.WithDex(t, dex), func(o *server.Options) {
		defaults := server.NewOptions().Limits
		defaults.TrustedProxyCIDRs = []string{"127.0.0.1/32"}
		// A flood of a test is slow.
		defaults.LoginsPerPeer = 1
		o.Limits = defaults
	})
	ready(t, hub, dex.IDToken(t, framework.HubClient, "bob"))
	ready(t, hub, dex.IDToken(t, framework.HubClient, "alice"))
	logIn := func(b *framework.Browser, person string) framework.Tokens {
		l := framework.NewLogin()
		return framework.TokensOf(t, l.Redeem(t, hub.Client, l.Code(t, dex.LogIn(t, b, l.URL(hub.Client), person))))
	}
	const office = "198.51.100.1"
	colleague := browserAt(t, hub, office)
	dex.LogIn(t, colleague, hub.URL+"/auth/login?return_to=/version", "bob")
	tokens := logIn(browserAt(t, hub, "192.0.2.1"), "bob")

	stop := flood(t, hub)
	defer stop()
	took := []time.Duration{}
	timed := func(do func()) {
		began := time.Now()
		do()
		took = append(took, time.Since(began))
	}
	for range 20 {
		timed(func() {
			tokens.Secret = framework.TokensOf(t, hub.Token(t, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tokens.Secret}})).Secret
		})
	}
	returning, newcomer := logIn(browserAt(t, hub, "192.0.2.2"), "alice"), logIn(browserAt(t, hub, "2001:db8:1:ffff::1"), "carol")
	hub.Do(t, whoIs(returning.Access), http.StatusOK)
	hub.Do(t, whoIs(newcomer.Access), http.StatusOK)
	logIn(colleague, "bob")
	for _, secret := range []string{returning.Secret, newcomer.Secret} {
		timed(func() {
			require.Equal(t, http.StatusOK, hub.Form(t, "/auth/revoke", url.Values{"token": {secret}}).Code)
		})
		require.Equal(t, "invalid_grant", hub.Refresh(t, secret).Text("error"))
	}
	timed(func() { require.Equal(t, http.StatusOK, page(t, hub, colleague, http.MethodPost, "/auth/logout").Code) })
	slices.Sort(took)
	t.Logf("beside the flood: median %s, longest %s", took[len(took)/2], took[len(took)-1])
	require.Less(t, took[len(took)*9/10], time.Second)
	require.Zero(t, limited(t, hub, "logins"))
	require.Zero(t, limited(t, hub, "sign_ups"))
	require.NotZero(t, limited(t, hub, "logins_per_peer"))
}

// limited returns the number of refusals by a limit.
func limited(t *testing.T, hub *framework.Hub, limit string) float64 {
	t.Helper()
	return metric(t, hub, `kedge_limited_total\{limit="`+limit+`"\}`)
}

// A device that asks beside a flood of devices gets a code, and a person can confirm it.
func TestFloods_ofDevicesLeaveAShare(t *testing.T) {
	t.Parallel()
	hub := framework.StartHub(t, kcp, framework.NewRoot(), framework.WithDex(t, dex), func(o *server.Options) {
		o.Limits.TrustedProxyCIDRs = []string{"127.0.0.1/32"}
		o.Limits.DeviceLogins, o.Limits.DeviceLoginsPerPeer = 5, 1
	})
	ask := func(from string) framework.Answer {
		a, err := hub.Try(call{Method: http.MethodPost, Path: "/auth/device", Body: "client_id=kedge-cli", Header: http.Header{
			"Content-Type": {"application/x-www-form-urlencoded"}, "X-Forwarded-For": {from},
		}})
		require.NoError(t, err)
		return a
	}
	refused := 0
	for range 5 {
		for i := range 40 {
			if ask(fmt.Sprintf("2001:db8:%x::1", i)).Code == http.StatusTooManyRequests {
				refused++
			}
		}
	}
	require.NotZero(t, refused)
	require.Equal(t, http.StatusOK, ask("192.0.2.1").Code)
	require.Equal(t, http.StatusOK, ask("2001:db8:ffff::1").Code)
}

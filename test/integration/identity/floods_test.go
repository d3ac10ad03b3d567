package identity

import (
	"fmt"
	"net/http"
	"testing"

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

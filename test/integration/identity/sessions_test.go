package identity

import (
	"errors"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// Dex ends the refresh token of a login at the next one of the same person and client. Both
// sessions of the person live on. Twenty refreshes of each session at once, on two replicas,
// make one request to Dex for each session.
func TestSessions_shareTheNewestGrant(t *testing.T) {
	t.Parallel()
	_, hubs := replicas(t, counted, 2)
	for _, hub := range hubs {
		ready(t, hub, counted.IDToken(t, framework.HubClient, "alice"))
	}
	all := []framework.Tokens{counted.LogInAt(t, hubs[0].Client, "alice"), counted.LogInAt(t, hubs[0].Client, "alice")}
	expiry := time.Unix(int64(claims(t, all[0].Access)["exp"].(float64)), 0)
	// Half of the lifetime later the hub asks Dex for newer tokens.
	framework.Eventually(t, framework.Long, func() error {
		return framework.Check(time.Until(expiry) < countedTokens/2-2*time.Second, "the token of the login is still good for long")
	})
	before := counted.TokenRequests(t)
	var wg sync.WaitGroup
	answers, failures := make([]framework.Answer, 40), make([]error, 40)
	for i := range answers {
		wg.Go(func() {
			answers[i], failures[i] = hubs[i%2].TryForm("/auth/token", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {all[i/2%2].Secret}})
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(failures...))
	successors := [2]map[framework.Tokens]bool{{}, {}}
	for i, a := range answers {
		successors[i/2%2][framework.TokensOf(t, a)] = true
	}
	require.Equal(t, before+2, counted.TokenRequests(t))
	for _, of := range successors {
		require.Len(t, of, 1, "one ID token and one successor of the secret")
		for tokens := range of {
			for _, hub := range hubs {
				hub.Do(t, whoIs(tokens.Access), http.StatusOK)
			}
		}
	}
}

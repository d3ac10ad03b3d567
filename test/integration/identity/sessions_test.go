package identity

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/test/framework"
)

const sessionsPath = "/api/users/me/sessions"

// sessionsOf lists the sessions of a token's person, as soon as that of the token is among them: a hub answers a login
// before its cache has the session.
func sessionsOf(t *testing.T, hub *framework.Hub, token string) (ids []string, current string) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		ids = nil
		a := hub.Do(t, call{Token: token, Method: http.MethodGet, Path: sessionsPath}, http.StatusOK)
		for _, item := range a.JSON["items"].([]any) {
			s := item.(map[string]any)
			ids = append(ids, fmt.Sprint(s["id"]))
			if s["current"] == true {
				current = fmt.Sprint(s["id"])
			}
		}
		return framework.Check(current != "", "the session of the token is not among %v", ids)
	})
	return ids, current
}

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

// A session that ends takes its tokens and its streams with it, on every replica within a
// second. Another session of the person, and tokens from elsewhere, live on until the person
// signs out everywhere.
func TestSession_endsOnEveryReplica(t *testing.T) {
	t.Parallel()
	root, hubs := replicas(t, dex, 2)
	for _, hub := range hubs {
		ready(t, hub, dex.IDToken(t, framework.HubClient, "carol"))
	}
	one, two := dex.LogInAt(t, hubs[0].Client, "carol"), dex.LogInAt(t, hubs[0].Client, "carol")
	elsewhere := dex.IDToken(t, framework.OtherClient, "carol")
	body := map[string]string{"displayName": "ACME"}
	org := hubs[0].Made(t, call{Token: one.Access, Method: http.MethodPost, Path: "/api/orgs", Body: body}).Text("uuid")
	cluster := hubs[0].Made(t, call{Token: one.Access, Method: http.MethodPost, Path: "/api/orgs/" + org + "/workspaces", Org: org, Body: body}).Text("clusterID")
	watches, kept := []*watch{}, []*watch{}
	for _, hub := range hubs {
		watches = append(watches, openWatch(t, hub, one.Access, cluster))
		kept = append(kept, openWatch(t, hub, two.Access, cluster), openWatch(t, hub, elsewhere, cluster))
	}
	sessionsOf(t, hubs[0], two.Access)
	ids, current := sessionsOf(t, hubs[0], one.Access)
	require.Len(t, ids, 2)
	other := ready(t, hubs[0], dex.IDToken(t, framework.HubClient, "alice"))
	require.NotEmpty(t, other.Text("name"))
	end := call{Token: dex.IDToken(t, framework.HubClient, "alice"), Method: http.MethodDelete, Path: sessionsPath + "/" + current}
	hubs[0].Do(t, end, http.StatusNotFound)
	end.Token = two.Access
	began := time.Now()
	hubs[1].Do(t, end, http.StatusNoContent)
	for _, w := range watches {
		w.ended(t)
	}
	require.Less(t, time.Since(began), 2*time.Second)
	for _, hub := range hubs {
		ended(t, hub, one.Access)
		require.Equal(t, "invalid_grant", hub.Refresh(t, one.Secret).Text("error"))
		hub.Do(t, call{Token: one.Access, Method: http.MethodGet, Path: "/clusters/" + cluster + "/api/v1/namespaces"}, http.StatusUnauthorized)
		hub.Do(t, whoIs(two.Access), http.StatusOK)
		hub.Do(t, whoIs(elsewhere), http.StatusOK)
	}
	// A Session that kcp's admin deletes by hand refuses its tokens, and those of no other.
	platform, three := kcp.Platform(t, root), dex.LogInAt(t, hubs[0].Client, "carol")
	hubs[1].Do(t, whoIs(three.Access), http.StatusOK)
	_, current = sessionsOf(t, hubs[0], three.Access)
	require.NoError(t, platform.Sessions(platform.UsersPath()).Delete(t.Context(), current, metav1.DeleteOptions{}))
	for _, hub := range hubs {
		ended(t, hub, three.Access)
		hub.Do(t, whoIs(two.Access), http.StatusOK)
	}
	framework.Eventually(t, framework.Long, func() error {
		s, err := platform.Sessions(platform.UsersPath()).Get(t.Context(), current, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return framework.Check(s.Spec.EndedAt != nil, "%+v", s.Spec)
	})
	for _, hub := range hubs {
		ended(t, hub, three.Access)
	}
	for _, w := range kept {
		w.open(t)
	}

	everywhere := call{Token: two.Access, Method: http.MethodDelete, Path: sessionsPath}
	hubs[0].Do(t, everywhere, http.StatusBadRequest)
	everywhere.Path += "?all=true"
	hubs[0].Do(t, everywhere, http.StatusNoContent)
	for _, w := range kept {
		w.ended(t)
	}
	for _, hub := range hubs {
		ended(t, hub, two.Access)
		ended(t, hub, elsewhere)
	}
	// Times in tokens are whole seconds.
	framework.Eventually(t, framework.Long, func() error {
		a := hubs[0].Do(t, whoIs(dex.IDToken(t, framework.OtherClient, "carol")), http.StatusOK, http.StatusUnauthorized)
		return framework.Equal(http.StatusOK, a.Code)
	})
}

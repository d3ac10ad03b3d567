package identity

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// newer returns an ID token that was issued in a later second than the one before: Dex dates in seconds.
func newer(t *testing.T, before, person string, groups ...string) (token string) {
	t.Helper()
	issued := func(token string) float64 { return claims(t, token)["iat"].(float64) }
	framework.Eventually(t, framework.Long, func() error {
		token = grouped.IDTokenIn(t, person, groups...)
		return framework.Check(issued(token) > issued(before), "the token is of the same second")
	})
	return token
}

// enters waits until a person gets a code for the namespaces of a Workspace, on every hub.
func enters(t *testing.T, hubs []*framework.Hub, token, cluster string, code int) {
	t.Helper()
	for _, hub := range hubs {
		framework.Eventually(t, framework.Long, func() error {
			a, err := hub.Try(call{Token: token, Method: http.MethodGet, Path: "/clusters/" + cluster + "/api/v1/namespaces"})
			if err != nil {
				return err
			}
			return framework.Equal(code, a.Code)
		})
	}
}

// Each part has a person and a group of its own.
func TestGroups_letPeopleInAndOut(t *testing.T) {
	t.Parallel()
	root, hubs := framework.NewRoot(), []*framework.Hub{}
	for range 2 {
		hub := framework.StartHub(t, kcp, root, framework.WithDex(t, grouped), framework.WithAdmin, func(o *server.Options) {
			o.OIDC.GroupsClaim = "groups"
		})
		hubs = append(hubs, hub)
	}
	for name, part := range map[string]func(*testing.T, []*framework.Hub){
		"as members": membersComeAndGo, "who make a Workspace": makerGoes,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			part(t, hubs)
		})
	}
}

// A group of the identity provider lets people in and out: mapping, newer tokens, an older token, a token without the
// claim, and a mapping that is removed, on two hubs.
func membersComeAndGo(t *testing.T, hubs []*framework.Hub) {
	hub := hubs[0]
	org := hub.CreateOrg(t, "heidi", "ACME")
	made := hub.CreateWorkspace(t, "heidi", org, "dev")
	ws, cluster := made.Text("uuid"), made.Text("clusterID")
	bob := grouped.IDTokenIn(t, "bob", "dev", "sales")
	name := ready(t, hub, bob).Text("name")
	enters(t, hubs, bob, cluster, http.StatusForbidden)

	mapping := map[string]string{"group": "kedge:dev", "role": "member", "workspace": ws}
	mapped := hub.Do(t, framework.InOrg("heidi", http.MethodPost, org, "/groups", mapping), http.StatusCreated)
	require.EqualValues(t, 1, mapped.JSON["people"])
	enters(t, hubs, bob, cluster, http.StatusOK)
	member := hub.Do(t, framework.InWorkspace("heidi", http.MethodGet, org, ws, "/members/"+name, nil), http.StatusOK)
	require.Equal(t, "member", member.Text("role"))
	require.Empty(t, member.Text("expiresAt"), "the end of what a group gives moves on with each login")
	source := member.JSON["sources"].([]any)[0].(map[string]any)
	require.Equal(t, "group:"+mapped.Text("id"), source["source"])
	refused := hub.Do(t, framework.InWorkspace("heidi", http.MethodDelete, org, ws, "/members/"+name, nil), http.StatusConflict)
	require.Contains(t, string(refused.Raw), mapped.Text("id"), "a removal would not end what the group gives")
	out, errOut, err := hub.KubectlWith(t, bob, cluster, "auth", "can-i", "create", "configmaps")
	require.NoError(t, err, errOut)
	require.Contains(t, out, "yes")

	// Bob leaves the group. The next token that any hub sees ends it, and streams with it.
	stream := openWatch(t, hubs[1], bob, cluster)
	left := newer(t, bob, "bob", "sales")
	began := time.Now()
	hub.Do(t, whoIs(left), http.StatusOK)
	stream.ended(t)
	require.Less(t, time.Since(began), 3*time.Second)
	enters(t, hubs, left, cluster, http.StatusForbidden)
	enters(t, hubs, bob, cluster, http.StatusForbidden)
	hub.Do(t, framework.InWorkspace("heidi", http.MethodGet, org, ws, "/members/"+name, nil), http.StatusNotFound)

	// He comes back, and a token without the claim says nothing.
	back := newer(t, left, "bob", "dev")
	hub.Do(t, whoIs(back), http.StatusOK)
	enters(t, hubs, back, cluster, http.StatusOK)
	silentOne := newer(t, back, "bob")
	require.NotContains(t, claims(t, silentOne), "groups")
	hub.Do(t, whoIs(silentOne), http.StatusOK)
	enters(t, hubs, silentOne, cluster, http.StatusOK)

	hub.Do(t, framework.InOrg("heidi", http.MethodDelete, org, "/groups/"+mapped.Text("id"), nil), http.StatusNoContent)
	enters(t, hubs, back, cluster, http.StatusForbidden)
}

// A person whom a group lets into the Organization makes a Workspace there. They keep it with the group, and lose it
// with the group.
func makerGoes(t *testing.T, hubs []*framework.Hub) {
	hub := hubs[0]
	org := hub.CreateOrg(t, "heidi", "ACME")
	mapping := map[string]string{"group": "kedge:ops", "role": "member"}
	hub.Do(t, framework.InOrg("heidi", http.MethodPost, org, "/groups", mapping), http.StatusCreated)
	carol := grouped.IDTokenIn(t, "carol", "ops", "sales")
	name := ready(t, hub, carol).Text("name")
	create := framework.InOrg("", http.MethodPost, org, "/workspaces", map[string]string{"displayName": "hers"})
	create.Token = carol
	var made framework.Answer
	framework.Eventually(t, framework.Long, func() (err error) {
		made, err = hub.TryMade(create)
		return err
	})
	enters(t, hubs, carol, made.Text("clusterID"), http.StatusOK)
	member := hub.Do(t, framework.InWorkspace("heidi", http.MethodGet, org, made.Text("uuid"), "/members/"+name, nil), http.StatusOK)
	require.Equal(t, "admin", member.Text("role"))
	self := framework.InWorkspace("", http.MethodPost, org, made.Text("uuid"), "/members", map[string]any{
		"userRef": map[string]string{"name": name}, "role": "admin",
	})
	self.Token = carol
	hub.Do(t, self, http.StatusForbidden)
	hub.Do(t, whoIs(newer(t, carol, "carol", "sales")), http.StatusOK)
	enters(t, hubs, carol, made.Text("clusterID"), http.StatusForbidden)
}

package identity

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// invitation is a link.
type invitation struct{ id, secret string }

// inviting is the body of an invitation.
func inviting(role string, more ...map[string]string) map[string]string {
	body := map[string]string{"role": role}
	for _, m := range more {
		maps.Copy(body, m)
	}
	return body
}

// invite makes an invitation and reads its link.
func invite(t *testing.T, hub *framework.Hub, c call) invitation {
	t.Helper()
	a := hub.Do(t, c, http.StatusCreated)
	link, err := url.Parse(a.Text("url"))
	require.NoError(t, err)
	require.Equal(t, "/ui/invitations/"+a.Text("id"), link.Path)
	require.Len(t, link.Fragment, 43, "256 bits")
	return invitation{a.Text("id"), link.Fragment}
}

// by is a request about the invitation with the secret of the link.
func (i invitation) by(c call, method, below string) call {
	c.Method, c.Path, c.Header = method, "/api/invitations/"+i.id+below, http.Header{"X-Kedge-Invitation": {i.secret}}
	return c
}

// stateOf reads the state of an invitation from the list of its Organization.
func stateOf(t *testing.T, hub *framework.Hub, as, org, id string) (state, acceptedBy string) {
	t.Helper()
	items, _ := hub.Do(t, framework.InOrg(as, http.MethodGet, org, "/invitations?limit=500", nil), http.StatusOK).JSON["items"].([]any)
	for _, item := range items {
		if i, _ := item.(map[string]any); i["id"] == id {
			state, _ = i["state"].(string)
			acceptedBy, _ = i["acceptedBy"].(string)
		}
	}
	return state, acceptedBy
}

// A hub takes nobody new. bob comes in with a link and alice with her address, while carol stays a stranger.
func TestInvitation_letsStrangersInUnderClosed(t *testing.T) {
	t.Parallel()
	hub := framework.StartHub(t, kcp, framework.NewRoot(), framework.WithDex(t, dex), framework.WithAdmin, func(o *server.Options) {
		o.Registration = "closed"
	})
	for name, admits := range map[string]func(*testing.T, *framework.Hub){"a link": linkAdmits, "an address": addressAdmits} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			admits(t, hub)
		})
	}
}

// The link of an invitation lets one stranger in, who gets the place and works in it.
func linkAdmits(t *testing.T, hub *framework.Hub) {
	org := hub.CreateOrg(t, "heidi", "ACME")
	made := hub.CreateWorkspace(t, "heidi", org, "dev")
	ws := made.Text("uuid")
	bob, carol := dex.IDToken(t, framework.HubClient, "bob"), dex.IDToken(t, framework.HubClient, "carol")
	framework.Eventually(t, framework.Long, func() error {
		a := hub.Do(t, whoIs(bob), http.StatusForbidden, http.StatusServiceUnavailable)
		return framework.Equal(http.StatusForbidden, a.Code)
	})
	i := invite(t, hub, framework.InWorkspace("heidi", http.MethodPost, org, ws, "/invitations", inviting("member", map[string]string{"note": "Welcome!"})))

	shown := hub.Do(t, i.by(call{}, http.MethodGet, ""), http.StatusOK)
	require.Equal(t, "Open", shown.Text("state"))
	require.Equal(t, "ACME", shown.Text("orgDisplayName"))
	require.Equal(t, "dev", shown.Text("workspaceDisplayName"))
	require.Equal(t, "Welcome!", shown.Text("note"))
	require.NotContains(t, string(shown.Raw), org)
	wrong, missing := i, i
	wrong.secret, missing.id = strings.Repeat("a", 43), "99999999-9999-4999-8999-999999999999"
	guessed := hub.Do(t, wrong.by(call{}, http.MethodGet, ""), http.StatusNotFound)
	require.Equal(t, guessed.Raw, hub.Do(t, missing.by(call{}, http.MethodGet, ""), http.StatusNotFound).Raw)
	hub.Do(t, wrong.by(call{Token: bob}, http.MethodPost, "/accept"), http.StatusForbidden)

	accepted := hub.Do(t, i.by(call{Token: bob}, http.MethodPost, "/accept"), http.StatusOK)
	require.Equal(t, "member", accepted.Text("role"))
	require.Equal(t, ws, accepted.Text("workspaceUUID"))
	require.Equal(t, "Approved", hub.Do(t, whoIs(bob), http.StatusOK).Text("registration"))
	out, errOut, err := hub.KubectlWith(t, bob, made.Text("clusterID"), "get", "namespaces", "-o", "name")
	require.NoError(t, err, errOut)
	require.Contains(t, out, "namespace/default")
	again := hub.Do(t, i.by(call{Token: bob}, http.MethodPost, "/accept"), http.StatusOK)
	require.Equal(t, "member", again.Text("role"), "of the same person")
	hub.Do(t, i.by(call{Token: carol}, http.MethodPost, "/accept"), http.StatusForbidden)
	hub.Do(t, whoIs(carol), http.StatusForbidden)
	late := hub.Do(t, i.by(call{As: "heidi"}, http.MethodPost, "/accept"), http.StatusConflict)
	require.Equal(t, []string{"Accepted"}, framework.CausesOf(t, late))

	// It never brings a membership back.
	hub.Do(t, framework.InWorkspace("heidi", http.MethodDelete, org, ws, "/members/"+accepted.Text("user"), nil), http.StatusNoContent)
	gone := hub.Do(t, i.by(call{Token: bob}, http.MethodPost, "/accept"), http.StatusConflict)
	require.Equal(t, []string{"Accepted"}, framework.CausesOf(t, gone))
	require.NotContains(t, hub.Log.String(), i.secret)
}

// A person with the verified address needs no link, and nobody else finds the invitation with it.
func addressAdmits(t *testing.T, hub *framework.Hub) {
	org := hub.CreateOrg(t, "heidi", "ACME")
	alice, carol := dex.IDToken(t, framework.HubClient, "alice"), dex.IDToken(t, framework.HubClient, "carol")
	body := inviting("admin", map[string]string{"email": "Alice@Example.com"})
	i := invite(t, hub, framework.InOrg("heidi", http.MethodPost, org, "/invitations", body))
	require.Equal(t, "Open", hub.Do(t, i.by(call{}, http.MethodGet, ""), http.StatusOK).Text("state"), "before a login")
	framework.Eventually(t, framework.Long, func() error {
		a := hub.Do(t, i.by(call{Token: carol}, http.MethodPost, "/accept"), http.StatusForbidden, http.StatusServiceUnavailable)
		return framework.Equal(http.StatusForbidden, a.Code)
	})
	hub.Do(t, i.by(call{As: "heidi"}, http.MethodPost, "/accept"), http.StatusNotFound)

	// alice logs in with a browser, and the address is that of the login.
	b := framework.NewBrowser(t, dex.CAFile, hub.CA)
	require.Equal(t, http.StatusOK, dex.LogIn(t, b, hub.URL+"/auth/login?return_to=/version", "alice").Code)
	cookie := http.Header{"Cookie": {"__Host-kedge=" + b.Cookie(t, hub.URL, "__Host-kedge").Value}, "Sec-Fetch-Site": {"same-origin"}}
	for _, c := range []call{{Token: alice}, {Header: cookie}} {
		c.Method, c.Path = http.MethodGet, "/api/users/me/invitations"
		items, _ := hub.Do(t, c, http.StatusOK).JSON["items"].([]any)
		require.Len(t, items, 1)
		require.Equal(t, i.id, items[0].(map[string]any)["id"])
	}
	hub.Do(t, call{Method: http.MethodPost, Path: "/api/invitations/" + i.id + "/accept", Header: cookie}, http.StatusOK)
	left := hub.Do(t, call{Token: alice, Method: http.MethodGet, Path: "/api/users/me/invitations"}, http.StatusOK)
	require.Empty(t, left.JSON["items"])
	hub.Do(t, whoIs(carol), http.StatusForbidden)
}

// The cookie of the page of a link takes a stranger through a login that the hub would refuse.
func TestInvitation_goesThroughALogin(t *testing.T) {
	t.Parallel()
	hub := framework.StartHub(t, kcp, framework.NewRoot(), framework.WithDex(t, dex), framework.WithAdmin, func(o *server.Options) { o.Registration = "approval" })
	org := hub.CreateOrg(t, "heidi", "ACME")
	i := invite(t, hub, framework.InOrg("heidi", http.MethodPost, org, "/invitations", inviting("member")))
	require.Equal(t, "Pending", ready(t, hub, dex.IDToken(t, framework.HubClient, "carol")).Text("registration"))
	keep := func(site string, i invitation) (*framework.Browser, *framework.Page) {
		b := framework.NewBrowser(t, dex.CAFile, hub.CA)
		request, err := http.NewRequest(http.MethodPost, hub.URL+"/auth/invitation", strings.NewReader(url.Values{"id": {i.id}, "secret": {i.secret}}.Encode()))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Sec-Fetch-Site", site)
		return b, b.Do(t, request)
	}
	b, refused := keep("cross-site", i)
	require.Equal(t, http.StatusForbidden, refused.Code, "another site chooses what somebody accepts")
	require.Nil(t, b.Cookie(t, hub.URL, "__Host-kedge-invitation"))
	_, bad := keep("same-origin", invitation{"../x", "y"})
	require.Equal(t, http.StatusBadRequest, bad.Code)

	b, atDex := keep("same-origin", i)
	require.Equal(t, http.StatusOK, atDex.Code)
	sealed := b.Cookie(t, hub.URL, "__Host-kedge-invitation")
	require.NotNil(t, sealed)
	require.NotContains(t, sealed.Value, i.secret)
	back := dex.LogIn(t, b, hub.URL+"/auth/login?return_to=/version", "bob")
	require.Equal(t, http.StatusOK, back.Code)
	header := http.Header{"Sec-Fetch-Site": {"same-origin"}, "Cookie": {
		"__Host-kedge=" + b.Cookie(t, hub.URL, "__Host-kedge").Value + "; __Host-kedge-invitation=" + sealed.Value,
	}}
	require.Equal(t, "Approved", hub.Do(t, call{Method: http.MethodGet, Path: "/api/users/me", Header: header}, http.StatusOK).Text("registration"))
	hub.Do(t, call{Method: http.MethodPost, Path: "/api/invitations/" + i.id + "/accept", Header: http.Header{"Cookie": header["Cookie"], "Sec-Fetch-Site": {"cross-site"}}}, http.StatusForbidden)
	accepted := hub.Do(t, call{Method: http.MethodPost, Path: "/api/invitations/" + i.id + "/accept", Header: header}, http.StatusOK)
	require.Equal(t, org, accepted.Text("orgUUID"))
	require.Contains(t, accepted.Header.Get("Set-Cookie"), "__Host-kedge-invitation=;")
}

// What was granted by somebody who may not grant it any more is void, and so are invitations to places that
// are being deleted.
func TestInvitation_isVoidWithoutItsInviter(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	framework.SignUp(t, hub, "alice", "bob", "carol")
	org := hub.CreateOrg(t, "alice", "ACME")
	ws := hub.CreateWorkspace(t, "alice", org, "dev").Text("uuid")
	hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("bob", "admin")), http.StatusCreated)
	toOrg := invite(t, hub, framework.InOrg("bob", http.MethodPost, org, "/invitations", inviting("admin")))
	toWorkspace := invite(t, hub, framework.InWorkspace("alice", http.MethodPost, org, ws, "/invitations", inviting("member")))
	hub.Do(t, framework.InOrg("alice", http.MethodDelete, org, "/members/bob", nil), http.StatusNoContent)
	require.Equal(t, []string{"Void"}, framework.CausesOf(t, hub.Do(t, toOrg.by(call{As: "carol"}, http.MethodPost, "/accept"), http.StatusConflict)))
	state, _ := stateOf(t, hub, "alice", org, toOrg.id)
	require.Equal(t, "Void", state)
	// Another membership of the same person does not entitle to it.
	hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("bob", "admin")), http.StatusCreated)
	require.Equal(t, []string{"Void"}, framework.CausesOf(t, hub.Do(t, toOrg.by(call{As: "carol"}, http.MethodPost, "/accept"), http.StatusConflict)))

	member := hub.Do(t, toWorkspace.by(call{As: "alice"}, http.MethodPost, "/accept"), http.StatusConflict)
	require.Equal(t, []string{"AlreadyMember"}, framework.CausesOf(t, member))
	require.Contains(t, member.Text("message"), "admin")
	require.Equal(t, "Open", hub.Do(t, toWorkspace.by(call{}, http.MethodGet, ""), http.StatusOK).Text("state"))
	hub.Do(t, framework.InWorkspace("alice", http.MethodDelete, org, ws, "", nil), http.StatusAccepted, http.StatusNoContent, http.StatusOK)
	require.Equal(t, []string{"Void"}, framework.CausesOf(t, hub.Do(t, toWorkspace.by(call{As: "carol"}, http.MethodPost, "/accept"), http.StatusConflict)))
}

// An invitation that has expired says so, and one that is declined or revoked cannot be accepted.
func TestInvitation_ends(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	framework.SignUp(t, hub, "alice", "bob")
	org := hub.CreateOrg(t, "alice", "ACME")
	post := func(more ...map[string]string) call {
		return framework.InOrg("alice", http.MethodPost, org, "/invitations", inviting("member", more...))
	}
	for _, at := range []time.Duration{30 * time.Second, 31 * 24 * time.Hour} {
		hub.Do(t, post(map[string]string{"expiresAt": time.Now().Add(at).Format(time.RFC3339)}), http.StatusUnprocessableEntity)
	}
	declined, revoked := invite(t, hub, post()), invite(t, hub, post())
	hub.Do(t, declined.by(call{As: "bob"}, http.MethodPost, "/decline"), http.StatusNoContent)
	hub.Do(t, framework.InOrg("alice", http.MethodDelete, org, "/invitations/"+revoked.id, nil), http.StatusNoContent)
	hub.Do(t, framework.InOrg("alice", http.MethodDelete, org, "/invitations/"+declined.id, nil), http.StatusConflict)
	require.Equal(t, []string{"Declined"}, framework.CausesOf(t, hub.Do(t, declined.by(call{As: "bob"}, http.MethodPost, "/accept"), http.StatusConflict)))
	require.Equal(t, []string{"Revoked"}, framework.CausesOf(t, hub.Do(t, revoked.by(call{As: "bob"}, http.MethodPost, "/accept"), http.StatusConflict)))
	hub.Do(t, framework.InOrg("bob", http.MethodGet, org, "/invitations", nil), http.StatusForbidden)
}

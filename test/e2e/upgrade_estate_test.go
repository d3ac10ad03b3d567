package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// estate is what people have made with a hub, and what a hub of another version has to find.
type estate struct {
	// Org is alice's Organization, and Workspace the first one in it, with the logical cluster Cluster. Second is
	// another Organization, whose members a group can bring. Gone is a deleted Workspace of Org.
	Org, Workspace, Cluster, Second, Gone string
	Bots                                  map[string]*estateBot
	// Removed are people who have no right in Org any more.
	Removed []string
	// sessions are cookies by name, ended or not. invitations are links that nobody has used, the newest last.
	sessions    map[string]string
	invitations []link
	// changes are the request IDs of changes that were answered.
	changes []string
	// mapping is the mapping of a group to Second as kcp stores it; "" while no version has made one.
	mapping string
}

// estateBot is a bot with a token.
type estateBot struct {
	Token, Secret, Kubeconfig string
	Revoked                   bool
}

// link is that of an invitation.
type link struct{ id, secret string }

// ages is a life that does not end while the tests are in use.
const ages = 100 * 365 * 24 * time.Hour

// estateFlags are those of the hubs of an estate, which does not end by time.
func estateFlags() []string {
	return []string{
		"--admin-user", "heidi", "--ci-issuer", "https://127.0.0.1:1", "--bot-token-max-ttl", ages.String(), "--deletion-grace", ages.String(),
	}
}

// leavers are removed one after the other, each by another version.
func leavers() []string { return []string{"erin", "grace", "victor", "dave"} }

// newEstate makes an estate.
func newEstate(t *testing.T, h *hub) *estate {
	t.Helper()
	e := &estate{Bots: map[string]*estateBot{}, sessions: map[string]string{}}
	for _, person := range framework.People() {
		e.does(t, h, framework.Call{As: person, Method: http.MethodGet, Path: "/api/users/me"})
	}
	e.does(t, h, framework.Registering("wendy", "Rejected"))
	e.Org, e.Second = h.CreateOrg(t, "alice", "ACME"), h.CreateOrg(t, "alice", "Second")
	billing := map[string]any{"costCenter": "4711", "labels": map[string]string{"team": "web"}}
	e.does(t, h, e.in(http.MethodPatch, "", map[string]any{"description": "Anvils", "billing": billing}))
	made := h.CreateWorkspace(t, "alice", e.Org, "Work")
	e.Workspace, e.Cluster = made.Text("uuid"), made.Text("clusterID")
	e.creates(t, h, "held")
	for person, role := range map[string]string{"bob": "admin", "carol": "member", "dave": "member"} {
		e.does(t, h, e.in(http.MethodPost, "/members", framework.Adding(person, role)))
	}
	for _, person := range leavers()[:3] {
		e.does(t, h, e.in(http.MethodPost, "/members", framework.Adding(person, "admin")))
	}
	sudo := framework.Adding("dave", "member")
	sudo["sudo"], sudo["expiresAt"] = true, time.Now().Add(ages).UTC().Format(time.RFC3339)
	e.does(t, h, e.inside(http.MethodPost, "/members", sudo))
	for _, name := range []string{"kept", "revoked", "deleted"} {
		e.makesBot(t, h, name)
	}
	e.does(t, h, e.inside(http.MethodPost, "/serviceaccounts/"+e.bot(t, h, "kept")+"/trust",
		map[string]any{"issuer": "https://127.0.0.1:1", "claims": map[string]string{"sub": "job"}}))
	e.revokes(t, h, "revoked")
	e.does(t, h, e.inside(http.MethodDelete, "/serviceaccounts/"+e.bot(t, h, "deleted"), nil))
	e.Bots["deleted"].Revoked = true

	gone := h.CreateWorkspace(t, "alice", e.Org, "Gone")
	e.Gone = gone.Text("uuid")
	e.does(t, h, framework.InWorkspace("alice", http.MethodDelete, e.Org, e.Gone, "", nil))
	var name string
	e.sessions["carol"], _ = signsIn(t, h, "carol")
	e.sessions["bob, ended"], name = signsIn(t, h, "bob")
	e.does(t, h, framework.Call{As: "bob", Method: http.MethodDelete, Path: "/api/users/me/sessions/" + name})
	return e
}

// in is a call of alice to her Organization, and inside one to the first Workspace in it.
func (e *estate) in(method, below string, body any) framework.Call {
	return framework.InOrg("alice", method, e.Org, below, body)
}

func (e *estate) inside(method, below string, body any) framework.Call {
	return framework.InWorkspace("alice", method, e.Org, e.Workspace, below, body)
}

// does sends a request and requires success. It remembers the ID of a change.
func (e *estate) does(t *testing.T, h *hub, c framework.Call) framework.Answer {
	t.Helper()
	a := h.Do(t, c, http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent)
	if c.Method != http.MethodGet && c.Org != "" && c.Org == e.Org {
		e.changes = append(e.changes, a.Header.Get("X-Request-Id"))
	}
	return a
}

// creates makes a ConfigMap in the first Workspace.
func (e *estate) creates(t *testing.T, h *hub, name string) {
	t.Helper()
	h.Do(t, framework.Call{As: "alice", Method: http.MethodPost, Path: "/clusters/" + e.Cluster + "/api/v1/namespaces/default/configmaps", Body: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name},
	}}, http.StatusCreated)
}

// bot returns the UUID of a bot by its display name.
func (e *estate) bot(t *testing.T, h *hub, name string) (uuid string) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		items, _ := h.Do(t, e.inside(http.MethodGet, "/serviceaccounts", nil), http.StatusOK).JSON["items"].([]any)
		for _, item := range items {
			if b := item.(map[string]any); b["displayName"] == name {
				uuid = fmt.Sprint(b["uuid"])
			}
		}
		return framework.Check(uuid != "", "no bot %s", name)
	})
	return uuid
}

// makesBot makes a bot with a token and a kubeconfig, and waits until both are let in.
func (e *estate) makesBot(t *testing.T, h *hub, name string) {
	t.Helper()
	bot := e.does(t, h, e.inside(http.MethodPost, "/serviceaccounts", map[string]string{"displayName": name, "role": "member"})).Text("uuid")
	tokens, life := "/serviceaccounts/"+bot+"/tokens", map[string]any{"expirationSeconds": int64(ages.Seconds())}
	a := e.does(t, h, e.inside(http.MethodPost, tokens, life))
	c := e.inside(http.MethodPost, tokens, life)
	c.Header = http.Header{"Accept": {"application/yaml"}}
	e.Bots[name] = &estateBot{Token: tokens + "/" + a.Text("id"), Secret: a.Text("token"), Kubeconfig: string(e.does(t, h, c).Raw)}
	framework.Eventually(t, framework.Long, func() error {
		code, err := enters(h, e.Bots[name].Secret, e.Cluster)
		return framework.Check(err == nil && code == http.StatusOK, "the bot %s gets %d: %v", name, code, err)
	})
}

// revokes revokes a token of a bot.
func (e *estate) revokes(t *testing.T, h *hub, name string) {
	t.Helper()
	e.does(t, h, e.inside(http.MethodDelete, e.Bots[name].Token, nil))
	e.Bots[name].Revoked = true
}

// invites makes an invitation into the first Workspace.
func (e *estate) invites(t *testing.T, h *hub) {
	t.Helper()
	a := e.does(t, h, e.inside(http.MethodPost, "/invitations", map[string]string{"role": "member"}))
	u, err := url.Parse(a.Text("url"))
	require.NoError(t, err)
	e.invitations = append(e.invitations, link{a.Text("id"), u.Fragment})
}

// accepts has a person accept the newest invitation.
func (e *estate) accepts(t *testing.T, h *hub, person string) {
	t.Helper()
	last := e.invitations[len(e.invitations)-1]
	e.does(t, h, framework.Call{
		As: person, Method: http.MethodPost, Path: "/api/invitations/" + last.id + "/accept", Header: http.Header{"X-Kedge-Invitation": {last.secret}},
	})
	h.Enters(t, person, e.Cluster)
}

// lives has people change the estate. Each version in the row of an upgrade continues what the one before began.
func (e *estate) lives(t *testing.T, h *hub, version int) {
	t.Helper()
	name := fmt.Sprint("version ", version)
	e.does(t, h, e.in(http.MethodDelete, "/members/"+leavers()[version]+"?cascade=true", nil))
	e.Removed = append(e.Removed, leavers()[version])
	e.keepsOut(t, h)
	e.makesBot(t, h, name)
	made := h.CreateWorkspace(t, "alice", e.Org, name)
	e.does(t, h, framework.InWorkspace("alice", http.MethodPost, e.Org, made.Text("uuid"), "/members", framework.Adding("carol", "member")))
	h.Enters(t, "carol", made.Text("clusterID"))
	e.creates(t, h, fmt.Sprint("version-", version))
	e.does(t, h, e.in(http.MethodPatch, "", map[string]any{"displayName": "ACME " + name}))
	e.does(t, h, framework.InOrg("alice", http.MethodPatch, e.Second, "", map[string]string{"displayName": "Second " + name}))
	switch version {
	case 0:
		e.invites(t, h)
	case 1:
		e.accepts(t, h, "heidi")
		e.invites(t, h)
		e.revokes(t, h, "version 0")
		e.mapsGroup(t, h)
		e.mapping = e.specs(t, h)["organizations/"+e.Second+" groups"]
		require.Contains(t, e.mapping, "dev")
	case 2:
		e.accepts(t, h, "frank")
		e.revokes(t, h, "version 1")
	case 3:
		e.revokes(t, h, "version 2")
		e.does(t, h, framework.InWorkspace("alice", http.MethodPost, e.Org, e.Gone, "/undelete", nil))
		a := h.Do(t, framework.InOrg("alice", http.MethodGet, e.Second, "/groups", nil), http.StatusOK)
		require.Contains(t, string(a.Raw), `"dev"`)
	}
	if e.mapping != "" {
		require.Equal(t, e.mapping, e.specs(t, h)["organizations/"+e.Second+" groups"])
	}
}

// mapsGroup lets a group in, which the version before does not know.
func (e *estate) mapsGroup(t *testing.T, h *hub) {
	t.Helper()
	e.does(t, h, framework.InOrg("alice", http.MethodPost, e.Second, "/groups", map[string]string{"group": "dev", "role": "member"}))
	framework.Eventually(t, framework.Long, func() error {
		a, err := h.Try(framework.InOrg("frank", http.MethodGet, e.Second, "", nil))
		return framework.Check(err == nil && a.Code == http.StatusOK, "the group does not let frank in: %d %v; kcp has %s",
			a.Code, err, e.specs(t, h)["users/frank groups"])
	})
}

// keepsOut waits until the hub and kcp refuse people who were removed, and bots without a token.
func (e *estate) keepsOut(t *testing.T, h *hub) {
	t.Helper()
	for _, person := range e.Removed {
		h.Do(t, framework.InOrg(person, http.MethodGet, e.Org, "", nil), http.StatusForbidden, http.StatusNotFound)
		code, err := enters(h, framework.Token(person), e.Cluster)
		require.NoError(t, err)
		require.Contains(t, []int{http.StatusForbidden, http.StatusNotFound}, code, person)
		h.kcp().Refuses(t, person, e.Cluster)
	}
	for name, b := range e.Bots {
		if !b.Revoked {
			continue
		}
		code, err := enters(h, b.Secret, e.Cluster)
		require.NoError(t, err)
		require.Equal(t, http.StatusUnauthorized, code, name)
	}
}

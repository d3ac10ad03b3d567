package tenancy

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/framework"
)

// O-12 for Orgs: members are added, changed and removed. The same hub shows every change
// at once.
func TestO12_MembersOfAnOrg(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	p := newPlatform(t, hub.Options.RootWorkspace)
	org := hub.CreateOrg(t, "alice", "ACME")
	ws := hub.CreateWorkspace(t, "alice", org, "platform")
	cluster := ws.Text("clusterID")
	framework.SignUp(t, hub, "bob", "carol", "dave")
	list := func(as string) map[string]string {
		return framework.RolesListed(hub.Do(t, framework.InOrg(as, http.MethodGet, org, "/members", nil), http.StatusOK))
	}
	alices := p.BindingVersions(t, cluster, "alice")
	require.Len(t, alices, 1)

	// An admin adds a member.
	hub.Do(t, framework.InOrg("bob", http.MethodGet, org, "", nil), http.StatusForbidden)
	added := hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	require.Equal(t, "bob", added.Text("user"))
	require.Equal(t, "member", added.Text("role"))
	require.Equal(t, "org", added.Text("scope"))
	require.Equal(t, "Ready", added.Text("phase"))
	require.Equal(t, "true", added.Text("active"))
	require.NotEmpty(t, added.Text("since"))
	require.Equal(t, map[string]string{"alice": "admin", "bob": "member"}, list("bob"))
	require.Equal(t, "member", hub.Do(t, framework.InOrg("bob", http.MethodGet, org, "", nil), http.StatusOK).Text("role"))
	require.Empty(t, p.RolesIn(t, cluster, "bob"), "a member of the Org has nothing in its Workspaces")
	held, err := p.MembershipsOf(t, org)
	require.NoError(t, err)
	require.Equal(t, v1alpha1.ScopeOrg, held["bob"].Spec.Scope)
	require.Equal(t, v1alpha1.PhaseReady, held["bob"].Status.Phase)

	// Adding a member again returns the same Membership; another role is a conflict.
	again := hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("bob", "member")), http.StatusOK)
	require.Equal(t, added.Text("since"), again.Text("since"))
	refused := hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("bob", "admin")), http.StatusConflict)
	require.Contains(t, framework.StatusOf(t, refused).Message, "PATCH")
	require.Equal(t, "member", list("alice")["bob"])

	// A member can read but not write. The same calls by an admin succeed below.
	for _, c := range []call{
		framework.InOrg("bob", http.MethodPost, org, "/members", framework.Adding("carol", "member")),
		framework.InOrg("bob", http.MethodPatch, org, "/members/bob", framework.WithRole("admin")),
		framework.InOrg("bob", http.MethodPatch, org, "/members/alice", framework.WithRole("member")),
		framework.InOrg("bob", http.MethodDelete, org, "/members/alice", nil),
		framework.InOrg("bob", http.MethodDelete, org, "/members/bob", nil),
	} {
		hub.Do(t, c, http.StatusForbidden)
	}
	require.Equal(t, map[string]string{"alice": "admin", "bob": "member"}, list("alice"))

	// A new Org admin is an admin in all Workspaces when the answer arrives.
	_, _, err = hub.Kubectl(t, "bob", cluster, "get", "namespaces")
	require.Error(t, err)
	require.Equal(t, "admin", hub.Do(t, framework.InOrg("alice", http.MethodPatch, org, "/members/bob", framework.WithRole("admin")), http.StatusOK).Text("role"))
	require.Equal(t, []string{"kedge:workspace:admin"}, p.RolesIn(t, cluster, "bob"))
	_, errOut, err := hub.Kubectl(t, "bob", cluster, "get", "namespaces")
	require.NoError(t, err, errOut)
	hub.Do(t, framework.InOrg("bob", http.MethodPost, org, "/members", framework.Adding("carol", "member")), http.StatusCreated)
	require.Equal(t, map[string]string{"alice": "admin", "bob": "admin", "carol": "member"}, list("carol"))

	// A demoted admin keeps the Org Membership and loses access to the Workspaces.
	require.Equal(t, "member", hub.Do(t, framework.InOrg("alice", http.MethodPatch, org, "/members/bob", framework.WithRole("member")), http.StatusOK).Text("role"))
	require.Empty(t, p.RolesIn(t, cluster, "bob"))
	hub.Do(t, framework.InOrg("bob", http.MethodDelete, org, "/members/carol", nil), http.StatusForbidden)
	require.Equal(t, "member", list("bob")["bob"])

	// One member is removed by an admin, the other leaves.
	hub.Do(t, framework.InOrg("alice", http.MethodDelete, org, "/members/bob", nil), http.StatusNoContent)
	hub.Do(t, framework.InOrg("bob", http.MethodGet, org, "", nil), http.StatusForbidden)
	require.Equal(t, map[string]string{"alice": "admin", "carol": "member"}, list("alice"))
	hub.Do(t, framework.InOrg("carol", http.MethodDelete, org, "/memberships/me", nil), http.StatusNoContent)
	hub.Do(t, framework.InOrg("carol", http.MethodDelete, org, "/memberships/me", nil), http.StatusForbidden)
	require.Equal(t, map[string]string{"alice": "admin"}, list("alice"))
	held, err = p.MembershipsOf(t, org)
	require.NoError(t, err)
	require.NotContains(t, held, "bob")
	require.NotContains(t, held, "carol")

	// A removed member can be added again and gets a new Membership.
	hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("bob", "admin")), http.StatusCreated)
	require.Equal(t, []string{"kedge:workspace:admin"}, p.RolesIn(t, cluster, "bob"))
	require.Equal(t, alices, p.BindingVersions(t, cluster, "alice"), "none of this touched the first admin's binding")
}

// O-15: members are identified by the metadata.name of the User only.
func TestO15_NobodyIsAddedByAnotherName(t *testing.T) {
	t.Parallel()
	hub := framework.StartHub(t, kcp, framework.NewRoot())
	org := hub.CreateOrg(t, "alice", "ACME")
	framework.SignUp(t, hub, "bob")
	hub.Do(t, call{As: "bob", Method: http.MethodPatch, Path: "/api/users/me", Body: `{"displayName":"Robert"}`}, http.StatusOK)
	for name, body := range map[string]any{
		"the display name":     framework.Adding("Robert", "member"),
		"another case":         framework.Adding("BOB", "member"),
		"a name with a space":  framework.Adding("bob ", "member"),
		"nobody's name":        framework.Adding("nobody", "member"),
		"no name":              framework.Adding("", "member"),
		"me":                   framework.Adding("me", "member"),
		"a Membership's name":  framework.Adding(org+".bob", "member"),
		"no role":              framework.Adding("bob", ""),
		"a role that is none":  framework.Adding("bob", "owner"),
		"sudo in an Org":       map[string]any{"userRef": map[string]string{"name": "bob"}, "role": "member", "sudo": true},
		"another field":        map[string]any{"userRef": map[string]string{"name": "bob", "email": "b@example.com"}, "role": "member"},
		"a name as plain text": map[string]any{"userRef": "bob", "role": "member"},
	} {
		a := hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", body), http.StatusBadRequest)
		require.NotEmpty(t, framework.StatusOf(t, a).Message, name)
	}
	for _, c := range []call{
		framework.InOrg("alice", http.MethodPatch, org, "/members/bob", framework.WithRole("admin")),
		framework.InOrg("alice", http.MethodPatch, org, "/members/bob", framework.WithRole("member")),
		framework.InOrg("alice", http.MethodDelete, org, "/members/bob", nil),
		framework.InOrg("alice", http.MethodDelete, org, "/members/Robert", nil),
	} {
		hub.Do(t, c, http.StatusNotFound)
	}
	require.Equal(t, map[string]string{"alice": "admin"}, framework.RolesListed(hub.Do(t, framework.InOrg("alice", http.MethodGet, org, "/members", nil), http.StatusOK)))
	hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	hub.Do(t, framework.InOrg("alice", http.MethodPatch, org, "/members/bob", framework.WithRole("owner")), http.StatusBadRequest)
	hub.Do(t, framework.InOrg("alice", http.MethodPatch, org, "/members/bob", `{"role":null}`), http.StatusBadRequest)
	require.Equal(t, "member", hub.Do(t, framework.InOrg("alice", http.MethodPatch, org, "/members/bob", `{}`), http.StatusOK).Text("role"))
	require.Equal(t, "Robert", hub.Do(t, framework.InOrg("alice", http.MethodPatch, org, "/members/bob", framework.WithRole("admin")), http.StatusOK).Text("displayName"))
}

package tenancy

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// O-7: only Org admins change the Org's settings, and workspaceCreation takes effect on
// the next request.
func TestO7_OnlyAdminsSayWhoMayCreate(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	org := hub.CreateOrg(t, "alice", "ACME")
	own := hub.CreateWorkspace(t, "alice", org, "own").Text("uuid")
	framework.SignUp(t, hub, "bob", "dave")
	hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, own, "/members", framework.Adding("bob", "admin")), http.StatusCreated)
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, own, "/members", framework.Adding("dave", "admin")), http.StatusCreated)
	// The test checks authorization only, so it uses Prefer: respond-async and does not
	// wait.
	create := func(as string, code int) framework.Answer {
		c := framework.InOrg(as, http.MethodPost, org, "/workspaces", map[string]string{"displayName": as + "'s"})
		// The role in another Workspace must not grant rights here.
		c.Workspace = own
		c.Header = http.Header{"Prefer": {"respond-async"}}
		return hub.Do(t, c, code)
	}
	for _, field := range []string{"workspaceCreation", "catalogEntryCreation"} {
		require.Equal(t, "members", hub.Do(t, framework.InOrg("bob", http.MethodGet, org, "", nil), http.StatusOK).Text(field))
		for _, who := range []string{"bob", "dave", "erin"} {
			c := framework.InOrg(who, http.MethodPatch, org, "", map[string]string{field: "admin"})
			c.Workspace = own
			hub.Do(t, c, http.StatusForbidden)
		}
		for _, value := range []any{"nobody", "", "Admin", nil, true} {
			a := hub.Do(t, framework.InOrg("alice", http.MethodPatch, org, "", map[string]any{field: value}), http.StatusBadRequest)
			require.Equal(t, field, framework.StatusOf(t, a).Details.Causes[0].Field)
		}
		require.Equal(t, "members", hub.Do(t, framework.InOrg("bob", http.MethodGet, org, "", nil), http.StatusOK).Text(field))
	}
	create("bob", http.StatusAccepted)
	create("dave", http.StatusForbidden)
	hub.Do(t, framework.InOrg("alice", http.MethodPatch, org, "", `{"catalogEntryCreation":"admin"}`), http.StatusOK)
	create("bob", http.StatusAccepted)
	closed := hub.Do(t, framework.InOrg("alice", http.MethodPatch, org, "", `{"workspaceCreation":"admin"}`), http.StatusOK)
	require.Equal(t, "admin", closed.Text("workspaceCreation"))
	require.Contains(t, framework.StatusOf(t, create("bob", http.StatusForbidden)).Message, "workspaceCreation")
	create("dave", http.StatusForbidden)
	create("alice", http.StatusAccepted)
	hub.Do(t, framework.InOrg("alice", http.MethodPatch, org, "/members/bob", framework.WithRole("admin")), http.StatusOK)
	create("bob", http.StatusAccepted)
	hub.Do(t, framework.InOrg("alice", http.MethodPatch, org, "/members/bob", framework.WithRole("member")), http.StatusOK)
	create("bob", http.StatusForbidden)
	hub.Do(t, framework.InOrg("alice", http.MethodPatch, org, "", `{"workspaceCreation":"members"}`), http.StatusOK)
	create("bob", http.StatusAccepted)
}

// O-15: an Org admin is an admin in all Workspaces of the Org, in REST, through the proxy
// and in RBAC. A Workspace admin has no rights in the Org. Rights in all three end
// together.
func TestO15_AnOrgAdminIsAdminInItsWorkspacesAndNotTheReverse(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	p := newPlatform(t, hub.Options.RootWorkspace)
	org := hub.CreateOrg(t, "alice", "ACME")
	made := hub.CreateWorkspace(t, "alice", org, "platform")
	ws, cluster := made.Text("uuid"), made.Text("clusterID")
	framework.SignUp(t, hub, "bob", "dave")
	hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding("dave", "admin")), http.StatusCreated)

	const path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
	inREST := []call{
		framework.InWorkspace("bob", http.MethodGet, org, ws, "", nil),
		framework.InWorkspace("bob", http.MethodGet, org, ws, "/members", nil),
		framework.InWorkspace("bob", http.MethodPatch, org, ws, "", `{"displayName":"Platform"}`),
		framework.InWorkspace("bob", http.MethodGet, org, ws, "/kubeconfig", nil),
		framework.InWorkspace("bob", http.MethodPatch, org, ws, "/members/dave", framework.WithRole("admin")),
	}
	everywhere := func(code int) {
		t.Helper()
		for _, c := range inREST {
			hub.Do(t, c, code)
		}
		proxied := call{As: "bob", Method: http.MethodGet, Path: "/clusters/" + cluster + path}
		if code == http.StatusForbidden {
			// The proxy refuses at once and does not wait for kcp.
			hub.Do(t, proxied, code)
		}
		framework.Eventually(t, framework.Long, func() error {
			// kcp's authorizer reads from caches that can lag behind.
			return framework.Equal(code, kcp.Straight(t, "bob", cluster, path))
		})
		hub.Do(t, proxied, code)
	}
	everywhere(http.StatusForbidden)
	hub.Do(t, framework.InOrg("alice", http.MethodPatch, org, "/members/bob", framework.WithRole("admin")), http.StatusOK)
	everywhere(http.StatusOK)
	require.Equal(t, []string{"kedge:workspace:admin"}, p.RolesIn(t, cluster, "bob"))
	require.NotContains(t, framework.RolesListed(hub.Do(t, inREST[1], http.StatusOK)), "bob", "he is admin without a Membership in the Workspace")
	_, errOut, err := hub.Kubectl(t, "bob", cluster, "create", "clusterrolebinding", "readers", "--clusterrole=kedge:workspace:viewer", "--serviceaccount=default:reader")
	require.NoError(t, err, errOut)

	// The Org role counts in a Workspace that was created later and without a Workspace
	// Membership, and it outranks a lower Workspace role.
	later := hub.CreateWorkspace(t, "alice", org, "later")
	require.Equal(t, []string{"kedge:workspace:admin"}, p.RolesIn(t, later.Text("clusterID"), "bob"))
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	require.Equal(t, []string{"kedge:workspace:admin"}, p.RolesIn(t, cluster, "bob"))
	require.Equal(t, "admin", hub.Do(t, inREST[0], http.StatusOK).Text("role"))
	hub.Do(t, framework.InWorkspace("alice", http.MethodDelete, org, ws, "/members/bob", nil), http.StatusNoContent)
	everywhere(http.StatusOK)

	hub.Do(t, framework.InOrg("alice", http.MethodPatch, org, "/members/bob", framework.WithRole("member")), http.StatusOK)
	everywhere(http.StatusForbidden)
	require.Empty(t, p.RolesIn(t, later.Text("clusterID"), "bob"))

	// The reverse: dave is an admin of the Workspace and has no rights in the Org,
	// whatever headers the request has.
	hub.Do(t, framework.InWorkspace("dave", http.MethodPatch, org, ws, "", `{"displayName":"Dave's"}`), http.StatusOK)
	for _, c := range []call{
		framework.InOrg("dave", http.MethodGet, org, "", nil),
		framework.InOrg("dave", http.MethodPatch, org, "", `{"displayName":"Dave's"}`),
		framework.InOrg("dave", http.MethodGet, org, "/members", nil),
		framework.InOrg("dave", http.MethodPost, org, "/members", framework.Adding("dave", "admin")),
		framework.InOrg("dave", http.MethodPatch, org, "/members/bob", framework.WithRole("admin")),
		framework.InOrg("dave", http.MethodDelete, org, "/members/bob", nil),
		framework.InOrg("dave", http.MethodPost, org, "/workspaces", `{"displayName":"x"}`),
		framework.InWorkspace("dave", http.MethodGet, org, later.Text("uuid"), "", nil),
	} {
		hub.Do(t, c, http.StatusForbidden)
		if c.Workspace == "" {
			c.Workspace = ws
			hub.Do(t, c, http.StatusForbidden)
		}
	}
	hub.Do(t, call{As: "dave", Method: http.MethodGet, Path: "/clusters/" + later.Text("clusterID") + path}, http.StatusForbidden)
	require.Equal(t, http.StatusForbidden, kcp.Straight(t, "dave", later.Text("clusterID"), path))
	require.Equal(t, http.StatusForbidden, kcp.Straight(t, "dave", p.OrgPath(org), "/apis/tenancy.kedge.faros.sh/v1alpha1/memberships"))
	require.Equal(t, http.StatusForbidden, kcp.Straight(t, "alice", p.OrgPath(org), "/apis/tenancy.kedge.faros.sh/v1alpha1/memberships"))
	framework.Eventually(t, framework.Long, func() error { return framework.Equal(http.StatusOK, kcp.Straight(t, "dave", cluster, path)) })
}

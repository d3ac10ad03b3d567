package tenancy

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/framework"
)

// O-12 for Workspaces, with people without an Org Membership.
func TestO12_MembersOfAWorkspace(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	p := newPlatform(t, hub.Options.RootWorkspace)
	org := hub.CreateOrg(t, "alice", "ACME")
	made := hub.CreateWorkspace(t, "alice", org, "platform")
	ws, cluster := made.Text("uuid"), made.Text("clusterID")
	other := hub.CreateWorkspace(t, "alice", org, "other")
	framework.SignUp(t, hub, "bob", "carol", "dave")
	list := func(as string) map[string]string {
		return framework.RolesListed(hub.Do(t, framework.InWorkspace(as, http.MethodGet, org, ws, "/members", nil), http.StatusOK))
	}
	alices := p.BindingVersions(t, cluster, "alice")

	// A person without an Org Membership is added and has access when the answer arrives.
	hub.Do(t, framework.InWorkspace("dave", http.MethodGet, org, ws, "", nil), http.StatusForbidden)
	added := hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding("dave", "member")), http.StatusCreated)
	require.Equal(t, "workspace", added.Text("scope"))
	require.Equal(t, "Ready", added.Text("phase"))
	held, err := p.MembershipsOf(t, org)
	require.NoError(t, err)
	require.Contains(t, held, ws+".dave")
	require.Equal(t, ws, held[ws+".dave"].Spec.WorkspaceRef.Name)
	require.Equal(t, v1alpha1.PhaseReady, held[ws+".dave"].Status.Phase)
	require.NotContains(t, held, "dave", "he is in the Workspace and not in the Org")
	require.Equal(t, []string{"kedge:workspace:member"}, p.RolesIn(t, cluster, "dave"))
	_, errOut, err := hub.Kubectl(t, "dave", cluster, "create", "configmap", "daves", "--from-literal=a=b")
	require.NoError(t, err, errOut)
	require.Equal(t, "member", list("dave")["dave"])
	rows := rowsIn(t, hub, "dave", org)
	require.Len(t, rows, 1)
	require.Equal(t, cluster, rows[0]["clusterID"])
	require.Equal(t, "ACME", rows[0]["orgDisplayName"])

	// He sees only this Workspace of the Org, and not the Org itself.
	seen := hub.Do(t, framework.InOrg("dave", http.MethodGet, org, "/workspaces", nil), http.StatusOK).JSON["items"].([]any)
	require.Len(t, seen, 1)
	require.Equal(t, ws, seen[0].(map[string]any)["uuid"])
	orgs := hub.Do(t, call{As: "dave", Method: http.MethodGet, Path: "/api/orgs?limit=500"}, http.StatusOK)
	require.NotContains(t, string(orgs.Raw), org)
	for _, c := range []call{
		framework.InOrg("dave", http.MethodGet, org, "", nil),
		framework.InOrg("dave", http.MethodGet, org, "/members", nil),
		framework.InOrg("dave", http.MethodDelete, org, "/memberships/me", nil),
		framework.InWorkspace("dave", http.MethodGet, org, other.Text("uuid"), "/members", nil),
		framework.InWorkspace("dave", http.MethodPost, org, ws, "/members", framework.Adding("carol", "member")),
		framework.InWorkspace("dave", http.MethodPatch, org, ws, "/members/dave", framework.WithRole("admin")),
		framework.InWorkspace("dave", http.MethodDelete, org, ws, "/members/alice", nil),
		framework.InWorkspace("dave", http.MethodDelete, org, ws, "/members/dave", nil),
	} {
		hub.Do(t, c, http.StatusForbidden)
	}
	_, _, err = hub.Kubectl(t, "dave", other.Text("clusterID"), "get", "namespaces")
	require.Error(t, err)

	// Adding the member again returns 200, another role is a conflict, and requests
	// with an unknown role or person are refused.
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding("dave", "member")), http.StatusOK)
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding("dave", "admin")), http.StatusConflict)
	further := framework.Adding("carol", "member")
	further["roles"] = []map[string]string{{"name": "cluster-admin"}}
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", further), http.StatusBadRequest)
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding("nobody", "member")), http.StatusBadRequest)
	hub.Do(t, framework.InWorkspace("alice", http.MethodPatch, org, ws, "/members/bob", framework.WithRole("admin")), http.StatusNotFound)
	hub.Do(t, framework.InWorkspace("alice", http.MethodDelete, org, ws, "/members/bob", nil), http.StatusNotFound)

	// As an admin of the Workspace he may send the requests that were refused above.
	require.Equal(t, "admin", hub.Do(t, framework.InWorkspace("alice", http.MethodPatch, org, ws, "/members/dave", framework.WithRole("admin")), http.StatusOK).Text("role"))
	require.Equal(t, []string{"kedge:workspace:admin"}, p.RolesIn(t, cluster, "dave"))
	daves := p.BindingVersions(t, cluster, "dave")
	further["roles"] = []map[string]string{{"name": "made-by-the-tenant"}}
	hub.Do(t, framework.InWorkspace("dave", http.MethodPost, org, ws, "/members", further), http.StatusCreated)
	require.Equal(t, map[string]string{"alice": "admin", "dave": "admin", "carol": "member"}, list("carol"))
	hub.Do(t, framework.InOrg("dave", http.MethodGet, org, "/members", nil), http.StatusForbidden)

	// Members are removed or leave, down to the last one. The Org admin stays an admin
	// (O-15).
	hub.Do(t, framework.InWorkspace("dave", http.MethodDelete, org, ws, "/members/carol", nil), http.StatusNoContent)
	require.Empty(t, p.RolesIn(t, cluster, "carol"))
	hub.Do(t, framework.InWorkspace("carol", http.MethodGet, org, ws, "", nil), http.StatusForbidden)
	require.Equal(t, daves, p.BindingVersions(t, cluster, "dave"))
	hub.Do(t, framework.InWorkspace("dave", http.MethodDelete, org, ws, "/memberships/me", nil), http.StatusNoContent)
	require.Empty(t, p.RolesIn(t, cluster, "dave"))
	_, _, err = hub.Kubectl(t, "dave", cluster, "get", "namespaces")
	require.Error(t, err)
	require.Equal(t, map[string]string{"alice": "admin"}, list("alice"))
	require.Equal(t, alices, p.BindingVersions(t, cluster, "alice"), "none of this touched the first admin's binding")
	hub.Do(t, framework.InWorkspace("alice", http.MethodDelete, org, ws, "/memberships/me", nil), http.StatusNoContent)
	require.Empty(t, list("alice"))
	require.Equal(t, alices, p.BindingVersions(t, cluster, "alice"))
	_, errOut, err = hub.Kubectl(t, "alice", cluster, "get", "configmap", "daves")
	require.NoError(t, err, errOut)
}

package tenancy

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// The only admin of an Organization deletes their account. A platform admin gives the Organization another one, who works
// in it at once, and everybody there reads why.
func TestRescue_givesAnOrganizationAnAdminAgain(t *testing.T) {
	t.Parallel()
	hub := framework.StartHub(t, kcp, framework.NewRoot(), framework.WithAdmin)
	framework.SignUp(t, hub, "bob")
	framework.SignUp(t, hub, "carol")
	org := hub.CreateOrg(t, "alice", "ACME")
	ws := hub.CreateWorkspace(t, "alice", org, "dev")
	add := framework.InOrg("alice", http.MethodPost, org, "/members", map[string]any{"userRef": map[string]string{"name": "bob"}, "role": "member"})
	hub.Do(t, add, http.StatusCreated)
	rescue := framework.Call{As: "heidi", Method: http.MethodPost, Path: "/api/admin/orgs/" + org + "/admins", Body: map[string]any{
		"userRef": map[string]string{"name": "bob"}, "reason": "Ticket 4711: alice has left",
	}}
	view := framework.InOrg("alice", http.MethodPost, org, "/members", map[string]any{"userRef": map[string]string{"name": "carol"}, "role": "viewer"})
	hub.Do(t, view, http.StatusCreated)
	refused := hub.Do(t, rescue, http.StatusConflict)
	require.Equal(t, []string{"AdminReachable"}, framework.CausesOf(t, refused))
	hub.Do(t, framework.Call{As: "alice", Method: http.MethodDelete, Path: "/api/users/me"}, http.StatusAccepted)
	keyed := rescue
	keyed.Header = http.Header{"Idempotency-Key": {"lost"}}
	made := hub.Do(t, keyed, http.StatusCreated)
	require.Equal(t, "admin", made.Text("role"))
	require.Equal(t, "admin", hub.Do(t, keyed, http.StatusCreated).Text("role"), "the client has lost the first answer")
	require.Equal(t, "admin", hub.Do(t, framework.InOrg("bob", http.MethodGet, org, "", nil), http.StatusOK).Text("role"))
	out, errOut, err := hub.Kubectl(t, "bob", ws.Text("clusterID"), "auth", "can-i", "delete", "namespaces")
	require.NoError(t, err, errOut)
	require.Contains(t, out, "yes")
	require.Equal(t, []string{"AdminReachable"}, framework.CausesOf(t, hub.Do(t, rescue, http.StatusConflict)))
	for who, all := range map[string]bool{"bob": true, "carol": false} {
		read := hub.Do(t, framework.InOrg(who, http.MethodGet, org, "/audit", nil), http.StatusOK)
		reasons, others := 0, 0
		for _, item := range read.JSON["items"].([]any) {
			e := item.(map[string]any)
			if e["action"] != "POST /api/admin/orgs/{org}/admins" {
				others++
				continue
			}
			require.Equal(t, "heidi", e["actor"].(map[string]any)["user"])
			if facts, ok := e["facts"].(map[string]any); ok && facts["reason"] == "Ticket 4711: alice has left" {
				reasons++
			}
		}
		require.NotZero(t, reasons, "%s reads why", who)
		require.Equal(t, all, others > 0, "%s", who)
	}
}

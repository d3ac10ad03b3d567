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
	org := hub.CreateOrg(t, "alice", "ACME")
	ws := hub.CreateWorkspace(t, "alice", org, "dev")
	add := framework.InOrg("alice", http.MethodPost, org, "/members", map[string]any{"userRef": map[string]string{"name": "bob"}, "role": "member"})
	hub.Do(t, add, http.StatusCreated)
	rescue := framework.Call{As: "heidi", Method: http.MethodPost, Path: "/api/admin/orgs/" + org + "/admins", Body: map[string]any{
		"userRef": map[string]string{"name": "bob"}, "reason": "Ticket 4711: alice has left",
	}}
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
}

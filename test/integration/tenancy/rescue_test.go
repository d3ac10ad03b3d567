package tenancy

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/records"
	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// The only admin of an Organization deletes their account. A platform admin gives the Organization another one, who works
// in it at once, and everybody there reads why.
func TestRescue_givesAnOrganizationAnAdminAgain(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	hub := framework.StartHub(t, kcp, framework.NewRoot(), framework.WithAdmin, func(o *server.Options) {
		o.AuditLogFile, o.Records.Database, o.LeaderElect = file, records.DefaultURL(o.DataDir), false
	})
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
		// The database follows the files.
		framework.Eventually(t, framework.Long, func() error {
			reasons, others := 0, 0
			for _, item := range hub.Do(t, framework.InOrg(who, http.MethodGet, org, "/audit", nil), http.StatusOK).JSON["items"].([]any) {
				e := item.(map[string]any)
				facts, _ := e["facts"].(map[string]any)
				switch {
				case e["action"] != "POST /api/admin/orgs/{org}/admins":
					others++
				case e["actor"].(map[string]any)["user"] == "heidi" && facts["reason"] == "Ticket 4711: alice has left":
					reasons++
				}
			}
			require.True(t, all || others == 0, "%s reads %d other events", who, others)
			return framework.Check(reasons > 0 && all == (others > 0), "%s reads why in %d events, and %d others", who, reasons, others)
		})
	}
}

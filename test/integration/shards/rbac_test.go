package shards

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// The example for operators has all rights that a hub needs in kcp's root workspace.
func TestHub_needsNoAdminOfKCP(t *testing.T) { //nolint:paralleltest // other tests move new workspaces between shards
	framework.Sample(t, 2)
	rights, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "examples", "rbac.yaml"))
	require.NoError(t, err)
	kcp.Applies(t, "root", string(rights))
	kcp.Schedule(t, framework.RootShard)
	hub := framework.StartHub(t, kcp.Unprivileged(), framework.NewRoot())
	framework.SignUp(t, hub, "alice", "bob")
	org := hub.CreateOrg(t, "alice", "Acme")
	a := hub.CreateWorkspace(t, "alice", org, "Build")
	ws := workspace{org, a.Text("uuid"), a.Text("clusterID")}
	hub.Do(t, ws.call("alice", http.MethodPost, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	hub.Enters(t, "bob", ws.cluster)
	hub.Do(t, ws.call("alice", http.MethodDelete, "", nil), http.StatusOK)
	require.NoError(t, enters(hub, "bob", "", ws.cluster, http.StatusForbidden))
	kcp.Refuses(t, "bob", ws.cluster)
	hub.Do(t, ws.call("alice", http.MethodPost, "/undelete", nil), http.StatusOK)
	hub.Enters(t, "bob", ws.cluster)
}

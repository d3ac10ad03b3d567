package shards

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// Creates take what waits on another shard than the one on which kcp would make it now, and that works at once. The
// next spare lies where kcp makes workspaces then.
func TestSpares_ofAnotherShardAreTaken(t *testing.T) { //nolint:paralleltest // other tests move new workspaces between shards
	// The tree of a hub lies on the root shard.
	kcp.Schedule(t, framework.RootShard)
	root := framework.NewRoot()
	hub := framework.StartHub(t, kcp.KCP, root, func(o *server.Options) { o.Spares.Organizations, o.Spares.Workspaces = 1, 1 })
	p := kcp.Platform(t, root)
	framework.SignUp(t, hub, "alice")
	for step, shard := range []string{framework.RootShard, second} {
		org, ws := spareOn(t, p, shard)
		kcp.Schedule(t, []string{second, framework.RootShard}[step])
		require.Equal(t, org.Name, hub.CreateOrg(t, "alice", "Acme"))
		made := hub.CreateWorkspace(t, "alice", org.Name, "Web")
		require.Equal(t, ws.Name, made.Text("uuid"))
		require.Equal(t, ws.ClusterID, made.Text("clusterID"))
		a, err := hub.TryOnce(call{
			As: "alice", Method: http.MethodPost, Path: "/clusters/" + ws.ClusterID + "/apis/rbac.authorization.k8s.io/v1/clusterroles",
			Body: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "first"}},
		})
		require.NoError(t, err)
		require.Equal(t, http.StatusCreated, a.Code, "%s", a.Raw)
	}
	spareOn(t, p, framework.RootShard)
}

// spareOn waits for the spare Organization, with its Workspace, which must lie on the shard.
func spareOn(t *testing.T, p framework.Platform, shard string) (org, workspace tenancy.Spare) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		orgs, err := framework.SparesIn(t.Context(), p.Clients, p.OrgsPath())
		if err != nil || len(orgs) != 1 || !orgs[0].KCPReady || orgs[0].Reserved != nil {
			return fmt.Errorf("%v: %w", orgs, err)
		}
		inside, err := framework.SparesIn(t.Context(), p.Clients, orgs[0].ClusterID)
		if err != nil || len(inside) != 1 || !inside[0].Whole {
			return fmt.Errorf("%v: %w", inside, err)
		}
		org, workspace = orgs[0], inside[0]
		return nil
	})
	require.Equal(t, shard, kcp.ShardOf(t, org.ClusterID))
	require.Equal(t, shard, kcp.ShardOf(t, workspace.ClusterID))
	return org, workspace
}

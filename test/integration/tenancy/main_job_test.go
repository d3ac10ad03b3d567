package tenancy

import (
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

func TestPerson_createsAnOrgAndWorksInAWorkspaceWithKubectl(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	org := hub.CreateOrg(t, "alice", "ACME")
	ws := hub.CreateWorkspace(t, "alice", org, "platform")
	cluster := ws.Text("clusterID")
	require.Equal(t, "Ready", ws.Text("phase"))
	require.Equal(t, hub.URL+"/clusters/"+cluster, ws.Text("url"))

	out, errOut, err := hub.Kubectl(t, "alice", cluster, "get", "namespaces", "-o", "name")
	require.NoError(t, err, errOut)
	require.Equal(t, "namespace/default\n", out)
	_, errOut, err = hub.Kubectl(t, "alice", cluster, "create", "configmap", "hello", "--from-literal=a=b")
	require.NoError(t, err, errOut)
	out, errOut, err = hub.Kubectl(t, "alice", ws.Text("workspacePath"), "get", "configmap", "hello", "-o", "jsonpath={.data.a}")
	require.NoError(t, err, errOut)
	require.Equal(t, "b", out)

	rows := rowsIn(t, hub, "alice", org)
	require.Len(t, rows, 2)
	require.Equal(t, "alice", rows[0]["orgFirstAdmin"])
	require.Equal(t, cluster, rows[1]["clusterID"])
}

// O-1: a rename changes no UUID and no cluster, and the index has the new name within a
// second.
func TestO1_RenamingMovesNothingAndShowsInTheIndex(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	org := hub.CreateOrg(t, "alice", "Before")
	ws := hub.CreateWorkspace(t, "alice", org, "before")
	uuid := ws.Text("uuid")
	renamed := hub.Do(t, call{As: "alice", Method: http.MethodPatch, Path: "/api/orgs/" + org, Org: org, Body: `{"displayName":"After"}`}, http.StatusOK)
	require.Equal(t, org, renamed.Text("uuid"))
	path := "/api/orgs/" + org + "/workspaces/" + uuid
	moved := hub.Do(t, call{As: "alice", Method: http.MethodPatch, Path: path, Org: org, Workspace: uuid, Body: `{"displayName":"after"}`}, http.StatusOK)
	require.Equal(t, ws.Text("clusterID"), moved.Text("clusterID"))
	// On the same hub the rename is visible at once (read your writes).
	rows := rowsIn(t, hub, "alice", org)
	for _, row := range rows {
		require.Equal(t, "After", row["orgDisplayName"])
	}
	require.Equal(t, "after", rows[1]["workspaceDisplayName"])
	require.Equal(t, "after", hub.Do(t, call{As: "alice", Method: http.MethodGet, Path: path, Org: org, Workspace: uuid}, http.StatusOK).Text("displayName"))
}

func TestSignUp_makesOneUserOfEightRequestsAtOnce(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hubs := []*framework.Hub{framework.StartHub(t, kcp, root), framework.StartHub(t, kcp, root)}
	var all sync.WaitGroup
	names := make([]string, 8)
	codes := make([]int, 8)
	for i := range names {
		all.Go(func() {
			a, err := hubs[i%2].Try(call{As: "erin", Method: http.MethodGet, Path: "/api/users/me"})
			if err == nil {
				names[i], codes[i] = a.Text("name"), a.Code
			}
		})
	}
	all.Wait()
	for i := range names {
		require.Equal(t, http.StatusOK, codes[i])
		require.Equal(t, "erin", names[i])
	}
	out, errOut, err := kcp.Kubectl(t, "", root+":users", "get", "users.tenancy.kedge.faros.sh", "-o", "name")
	require.NoError(t, err, errOut)
	require.Equal(t, "user.tenancy.kedge.faros.sh/erin\n", out)
}

// A warm read makes no call to kcp: quality.md, "kcp calls per warm request".
func TestReads_makeNoCallToKCPWhenWarm(t *testing.T) {
	t.Parallel()
	// The renewal of the Lease would count as a call to kcp.
	hub := framework.StartHub(t, kcp, framework.NewRoot(), func(o *server.Options) { o.LeaderElect = false })
	org := hub.CreateOrg(t, "alice", "ACME")
	ws := hub.CreateWorkspace(t, "alice", org, "platform").Text("uuid")
	reads := []call{
		{Path: "/api/users/me"}, {Path: "/api/users/me/memberships"}, {Path: "/api/orgs"},
		{Path: "/api/orgs/" + org, Org: org}, {Path: "/api/orgs/" + org + "/workspaces", Org: org},
		{Path: "/api/orgs/" + org + "/workspaces/" + ws, Org: org, Workspace: ws},
		{Path: "/api/orgs/" + org + "/workspaces/" + ws + "/kubeconfig", Org: org, Workspace: ws},
	}
	// Reconciliation after the creates must have ended, so that few calls but those of the reads are counted: what the
	// hub does now and then is less than one call for each repetition of a read. Health probes of kcp are not counted.
	const repetitions = 20
	calls := func() int {
		before := kcpCalls(t, hub)
		for _, r := range reads {
			for range repetitions {
				r.As, r.Method = "alice", http.MethodGet
				hub.Do(t, r, http.StatusOK)
			}
		}
		return kcpCalls(t, hub) - before
	}
	framework.Eventually(t, framework.Long, func() error {
		n := calls()
		return framework.Check(n < repetitions, "beside %d reads there were %d calls to kcp", repetitions*len(reads), n)
	})
}

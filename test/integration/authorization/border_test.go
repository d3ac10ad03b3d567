package authorization

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// O-10: the hub refuses its own workspaces by path and by cluster ID. For an ID kubectl prints the
// reason.
func TestO10_NothingReachesAWorkspaceOfTheHub(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	root := hub.Options.RootWorkspace
	org := hub.CreateOrg(t, "alice", "ACME")
	own := hub.CreateWorkspace(t, "alice", org, "own").Text("clusterID")
	id := func(parent, name string) string {
		out, errOut, err := kcp.Kubectl(t, "", parent, "get", "workspaces.tenancy.kcp.io", name, "-o", "jsonpath={.spec.cluster}")
		require.NoError(t, err, errOut)
		require.NotEmpty(t, out)
		return out
	}
	// The positive control: alice runs the same command in her own Workspace.
	_, errOut, err := hub.Kubectl(t, "alice", own, "get", "namespaces")
	require.NoError(t, err, errOut)
	for name, cluster := range map[string]string{
		"her Org by path":         root + ":orgs:" + org,
		"her Org by ID":           id(root+":orgs", org),
		"root":                    "root",
		"the hub's root by path":  root,
		"users by path":           root + ":users",
		"users by ID":             id(root, "users"),
		"orgs by path":            root + ":orgs",
		"orgs by ID":              id(root, "orgs"),
		"providers by path":       root + ":providers",
		"providers by ID":         id(root, "providers"),
		"a made up Org, by path":  root + ":orgs:11111111-2222-4333-8444-555555555555",
		"the hub's root by ID":    id("root", root[len("root:"):]),
		"somebody else's Org too": root + ":orgs:" + hub.CreateOrg(t, "bob", "Bob's"),
	} {
		t.Run(name, func(t *testing.T) {
			// A path that is not that of a Workspace is not found. The gate refuses an ID.
			reason, code, cause := "belongs to the hub and is never reached directly", http.StatusForbidden, "OrgWorkspaceNotDirectlyAccessible"
			if strings.Contains(cluster, ":") {
				reason, code, cause = "could not find the requested resource", http.StatusNotFound, "after /clusters/ comes the ID or the full path of one workspace"
			}
			_, errOut, err := hub.Kubectl(t, "alice", cluster, "get", "namespaces")
			require.Error(t, err)
			require.Contains(t, errOut, reason)
			a := hub.Do(t, call{As: "alice", Method: http.MethodGet, Path: "/clusters/" + cluster + "/api/v1/namespaces"}, code)
			require.Contains(t, string(a.Raw), cause)
			credential := hub.Do(t, call{As: "alice", Method: http.MethodPost, Path: "/api/credentials", Body: map[string]any{
				"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
				"spec": map[string]any{"interactive": false, "cluster": map[string]any{"server": hub.URL + "/clusters/" + cluster}},
			}}, http.StatusForbidden)
			require.Contains(t, string(credential.Raw), "OrgWorkspaceNotDirectlyAccessible")
			require.NotContains(t, string(credential.Raw), framework.Token("alice"))
		})
	}
}

func TestBorder_givesForeignAndUnknownClustersTheSameBytes(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	theirs := hub.CreateOrg(t, "bob", "Bob's")
	ws := hub.CreateWorkspace(t, "bob", theirs, "secret")
	get := func(as, cluster string, code int) string {
		return string(hub.Do(t, call{As: as, Method: http.MethodGet, Path: "/clusters/" + cluster + "/api/v1/namespaces"}, code).Raw)
	}
	foreign := get("alice", ws.Text("clusterID"), http.StatusForbidden)
	require.Equal(t, foreign, get("alice", "nosuchcluster", http.StatusForbidden))
	require.Equal(t, foreign, get("alice", ws.Text("workspacePath"), http.StatusForbidden))
	require.Contains(t, get("bob", ws.Text("clusterID"), http.StatusOK), "NamespaceList")

	missing := "11111111-2222-4333-8444-555555555555"
	org := func(as, uuid string, code int) string {
		return string(hub.Do(t, call{As: as, Method: http.MethodGet, Path: "/api/orgs/" + uuid, Org: uuid}, code).Raw)
	}
	require.Equal(t, org("alice", theirs, http.StatusForbidden), org("alice", missing, http.StatusForbidden))
	org("bob", theirs, http.StatusOK)
	_, errOut, err := hub.Kubectl(t, "alice", ws.Text("clusterID"), "get", "namespaces")
	require.Error(t, err)
	require.Contains(t, errOut, "you have no access to this cluster")
}

func TestBorder_showsNothingOfTheTenancyAPIs(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	org := hub.CreateOrg(t, "alice", "ACME")
	cluster := hub.CreateWorkspace(t, "alice", org, "own").Text("clusterID")
	out, errOut, err := hub.Kubectl(t, "alice", cluster, "api-resources", "-o", "name")
	require.NoError(t, err, errOut)
	require.Contains(t, out, "configmaps")
	require.NotContains(t, out, "tenancy.kcp.io")
	require.NotContains(t, out, "tenancy.kedge.faros.sh")
}

// A Workspace admin is not cluster-admin: only the hub may write the LogicalCluster.
func TestWorkspaceAdmin_cannotWriteTheLogicalCluster(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	org := hub.CreateOrg(t, "alice", "ACME")
	cluster := hub.CreateWorkspace(t, "alice", org, "own").Text("clusterID")
	_, errOut, err := hub.Kubectl(t, "alice", cluster, "get", "logicalclusters.core.kcp.io", "cluster")
	require.NoError(t, err, errOut)
	for _, args := range [][]string{
		{"annotate", "logicalclusters.core.kcp.io", "cluster", "core.kcp.io/inactive=true"},
		{"delete", "logicalclusters.core.kcp.io", "cluster", "--wait=false"},
		{"create", "clusterrole", "everything", "--verb=*", "--resource=*.*"},
	} {
		_, errOut, err := hub.Kubectl(t, "alice", cluster, args...)
		require.Error(t, err, args)
		require.Contains(t, errOut, "orbidden", args)
	}
	_, errOut, err = hub.Kubectl(t, "alice", cluster, "create", "clusterrolebinding", "readers", "--clusterrole=kedge:workspace:viewer", "--serviceaccount=default:reader")
	require.NoError(t, err, errOut)
}

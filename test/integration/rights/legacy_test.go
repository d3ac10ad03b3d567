package rights

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// A Workspace of an older hub has tenant-made bindings to users, and no condition
// LegacyRemoved. The hub removes these bindings.
func TestLegacy_isRemovedOnceThePolicyIsEnforced(t *testing.T) {
	t.Parallel()
	s := newWorkspaceScene(t)
	run := func(cluster, stdin, args string) string {
		t.Helper()
		out, errOut, err := kcp.Kubectl(t, stdin, cluster, strings.Fields(args)...)
		require.NoError(t, err, errOut)
		return out
	}
	// The legacy objects must appear after the first cleanup of the new Workspace.
	framework.Eventually(t, framework.Long, func() error {
		status := run(s.p.OrgPath(s.org), "", "get workspaces.tenancy.kcp.io "+s.ws+` -o jsonpath={.metadata.annotations.tenancy\.kedge\.faros\.sh/status}`)
		return framework.Check(strings.Contains(status, `"type":"LegacyRemoved","status":"True"`), "%s", status)
	})
	erins := strings.Replace(binding("erins", tenancy.ClusterRoleViewer, "erin", false), `"metadata":{`, `"metadata":{"finalizers":["example.org/held"],`, 1)
	run(s.cluster, erins, "create -f -")
	run(s.cluster, "", "create rolebinding group --clusterrole=kedge:workspace:viewer --group=dev")
	run(s.cluster, toServiceAccount("robots", tenancy.ClusterRoleViewer), "create -f -")
	run(s.cluster, "", `patch clusterrolebinding kedge:workspace:member:user:dave --type=merge -p {"metadata":{"finalizers":["example.org/held"]}}`)
	framework.Eventually(t, framework.Long, func() error {
		return framework.Check(hasInKCP(t, "erin", s.cluster, "list", "", "configmaps"), "erin does not have what the binding gives")
	})
	// Without a status annotation, the Workspace looks like one of an older hub.
	run(s.p.OrgPath(s.org), "", "annotate workspaces.tenancy.kcp.io "+s.ws+" "+v1alpha1.StatusAnnotation+"-")
	framework.Eventually(t, framework.Long, func() error {
		return framework.Check(!hasInKCP(t, "erin", s.cluster, "list", "", "configmaps"), "erin still has what a tenant gave her")
	})
	framework.Eventually(t, framework.Long, func() error {
		status := run(s.p.OrgPath(s.org), "", "get workspaces.tenancy.kcp.io "+s.ws+` -o jsonpath={.metadata.annotations.tenancy\.kedge\.faros\.sh/status}`)
		return framework.Check(strings.Contains(status, "removed 2 bindings, 1 finalizers of the hub's objects, 2 subjects of bindings"), "%s", status)
	})
	left := run(s.cluster, "", "get clusterrolebindings,rolebindings -A -o name")
	require.NotContains(t, left, "/erins")
	require.NotContains(t, left, "/group")
	require.Contains(t, left, "/robots")
	s.whole(t)
}

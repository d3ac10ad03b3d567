package rights

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// A role in a namespace is bound there only, waits for the namespace, and is unbound when it
// gets rights that the admin role does not have.
func TestNamespacedRoles_giveRightsInTheirNamespace(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	p := newPlatform(t, hub.Options.RootWorkspace)
	org := hub.CreateOrg(t, "alice", "ACME")
	made := hub.CreateWorkspace(t, "alice", org, "dev")
	ws, cluster := made.Text("uuid"), made.Text("clusterID")
	framework.SignUp(t, hub, "bob")
	alice := func(args ...string) {
		t.Helper()
		_, errOut, err := hub.Kubectl(t, "alice", cluster, args...)
		require.NoError(t, err, errOut)
	}
	admin := func(args ...string) {
		t.Helper()
		_, errOut, err := kcp.Kubectl(t, "", cluster, args...)
		require.NoError(t, err, errOut)
	}
	// Members only read ServiceAccounts.
	may := func(namespace string) bool {
		t.Helper()
		_, _, err := hub.Kubectl(t, "bob", cluster, "create", "serviceaccount", "made", "-n", namespace, "--dry-run=server")
		return err == nil
	}
	eventually := func(namespace string, want bool) {
		t.Helper()
		framework.Eventually(t, framework.Long, func() error {
			return framework.Check(may(namespace) == want, "bob in %s: want %t", namespace, want)
		})
	}
	alice("create", "clusterrole", "maker", "--verb=create", "--resource=serviceaccounts")
	alice("create", "namespace", "build")
	alice("create", "role", "own", "-n", "build", "--verb=create", "--resource=serviceaccounts")
	admin("create", "clusterrole", "above", "--verb=create", "--resource=resourcequotas")
	body := framework.Adding("bob", "member")
	body["roles"] = []map[string]string{
		{"name": "maker", "namespace": "default"}, {"name": "maker", "namespace": "later"}, {"name": "own", "namespace": "build"}, {"name": "above"},
		{"name": "above", "namespace": "default"},
	}
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", body), http.StatusCreated)
	name := ws + ".bob"
	status := func(says string, applied ...string) {
		t.Helper()
		framework.Eventually(t, framework.Long, func() error { return p.roleStatus(t, org, name, applied, says) })
	}
	status(string(tenancy.RoleNotCovered)+": above, default/above", "build/own", "default/maker")
	status(string(tenancy.RoleNamespaceMissing)+": later/maker", "build/own", "default/maker")
	require.Equal(t, []string{tenancy.ClusterRoleMember}, p.RolesIn(t, cluster, "bob"), "nothing in the whole Workspace")
	eventually("default", true)
	eventually("build", true)

	// The namespace appears. An untouched one is the negative control.
	alice("create", "namespace", "other")
	alice("create", "namespace", "later")
	eventually("later", true)
	require.False(t, may("other"))

	// The hub restores a binding that somebody deleted.
	admin("delete", "rolebinding", tenancy.ExtraBindingName("maker", "bob"), "-n", "later")
	eventually("later", true)

	// The role grows beyond the admin role and shrinks again.
	rules := `{"rules":[{"apiGroups":[""],"resources":["serviceaccounts","resourcequotas"],"verbs":["create"]}]}`
	admin("patch", "clusterrole", "maker", "--type=merge", "-p", rules)
	eventually("default", false)
	eventually("later", false)
	require.True(t, may("build"), "the other role stays bound")
	status(string(tenancy.RoleNotCovered)+": ", "build/own")
	rules = `{"rules":[{"apiGroups":[""],"resources":["serviceaccounts"],"verbs":["create"]}]}`
	admin("patch", "clusterrole", "maker", "--type=merge", "-p", rules)
	eventually("default", true)

	hub.Do(t, framework.InWorkspace("alice", http.MethodPatch, org, ws, "/members/bob", map[string]any{"roles": []v1alpha1.RoleRef{}}), http.StatusOK)
	for _, namespace := range []string{"default", "later", "build"} {
		eventually(namespace, false)
	}
	status("")
}

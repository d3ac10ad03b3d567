package rights

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

const (
	refusesRights = "at most the rights of kedge:workspace:admin"
	refusesSystem = "this ClusterRole of kcp has rights"
	refusesGroups = "this API group belongs to kcp or to the hub"
)

func resourceSchema(plural, kind, group string) string {
	return fmt.Sprintf(`{"apiVersion":"apis.kcp.io/v1alpha1","kind":"APIResourceSchema","metadata":{"name":"v1.%s.%s","annotations":{"api-approved.kubernetes.io":"unapproved, for a test"}},`+
		`"spec":{"group":"%[2]s","names":{"plural":"%[1]s","singular":"%[4]s","kind":"%[3]s","listKind":"%[3]sList"},"scope":"Cluster",`+
		`"versions":[{"name":"v1","served":true,"storage":true,"schema":{"type":"object"}}]}}`, plural, group, kind, strings.ToLower(kind))
}

// exportWith is the APIExport gizmos of the schema of gizmos.example.org.
func exportWith(claims string) string {
	return `{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIExport","metadata":{"name":"gizmos"},"spec":{"permissionClaims":` + claims +
		`,"resources":[{"group":"example.org","name":"gizmos","schema":"v1.gizmos.example.org","storage":{"crd":{}}}]}}`
}

func clusterRole(rules string) string {
	return `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"mine"},"rules":[` + rules + `]}`
}

// A provider writes in the virtual workspace of their APIExport, which they reach at kcp itself,
// with all rights on the objects that they claim. Bob enables an export of his own in the
// Workspace of which he is an admin, and claims RBAC.
func TestHostileProvider_isRefusedByKcp(t *testing.T) {
	t.Parallel()
	s := newWorkspaceScene(t)
	run := func(stdin, args string) {
		t.Helper()
		errOut, err := s.kubectl(t, "bob", stdin, args)
		require.NoError(t, err, errOut)
	}
	for _, group := range []string{"rbac.authorization.k8s.io", "tenancy.kcp.io"} {
		errOut, err := s.kubectl(t, "bob", resourceSchema("clusterrolebindings", "ClusterRoleBinding", group), "create -f -")
		require.Error(t, err, "kcp takes the policies for a kind from the workspace of the export that has it")
		require.Contains(t, errOut, refusesGroups)
	}
	run(resourceSchema("gizmos", "Gizmo", "example.org"), "create -f -")
	run(exportWith(`[{"group":"rbac.authorization.k8s.io","resource":"clusterroles","verbs":["*"]},{"group":"rbac.authorization.k8s.io","resource":"clusterrolebindings","verbs":["*"]},`+
		`{"group":"admissionregistration.k8s.io","resource":"validatingadmissionpolicybindings","verbs":["*"]}]`), "create -f -")
	run("", "create serviceaccount robot")
	entry := s.hub.Do(t, framework.InOrg("alice", http.MethodPost, s.org, "/catalog", map[string]any{
		"displayName": "Gizmos", "slug": "gizmos", "apiExport": map[string]string{"path": s.p.OrgPath(s.org) + ":" + s.ws, "name": "gizmos"},
	}), http.StatusCreated).Text("uuid")
	enable := func(accepted, rejected string) framework.Call {
		return framework.InWorkspace("bob", http.MethodPost, s.org, s.ws, "/providers/"+entry+"/enable",
			`{"acceptClaims":[`+accepted+`],"rejectClaims":[`+rejected+`]}`)
	}
	const roles = `{"group":"rbac.authorization.k8s.io","resource":"clusterroles"},{"group":"rbac.authorization.k8s.io","resource":"clusterrolebindings"}`
	const policies = `{"group":"admissionregistration.k8s.io","resource":"validatingadmissionpolicybindings"}`
	s.hub.Do(t, enable(roles+","+policies, ""), http.StatusUnprocessableEntity)
	s.hub.Do(t, enable(roles, policies), http.StatusCreated, http.StatusAccepted)
	accept := `patch apibindings.apis.kcp.io gizmos --type=json -p [{"op":"replace","path":"/spec/permissionClaims/2/state","value":"Accepted"}]`
	errOut, err := s.kubectl(t, "bob", "", accept)
	require.Error(t, err)
	require.Contains(t, errOut, "reject that claim")

	virtual := func(stdin string) (string, error) {
		_, errOut, err := kcp.KubectlAs(t, "bob", stdin, "/services/apiexport/"+s.cluster+"/gizmos/clusters/"+s.cluster, "create", "-f", "-")
		return errOut, err
	}
	// The positive controls: the claims are in effect.
	framework.Eventually(t, framework.Long, func() error {
		errOut, err := virtual(clusterRole(`{"apiGroups":[""],"resources":["configmaps"],"verbs":["get"]}`))
		return framework.Check(err == nil, "%s", errOut)
	})
	errOut, err = virtual(toServiceAccount("robots", "mine"))
	require.NoError(t, err, errOut)
	again := func(role string) string { return strings.Replace(role, `"mine"`, `"more"`, 1) }
	for _, a := range []attack{
		{"a binding to a person", refusesPeople, binding("erins", tenancy.ClusterRoleViewer, "erin", false), ""},
		{"a role with all rights", refusesRights, again(clusterRole(`{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}`)), ""},
		{"a role that changes the policy", refusesRights, again(clusterRole(`{"apiGroups":["admissionregistration.k8s.io"],"resources":["validatingadmissionpolicies"],"verbs":["delete"]}`)), ""},
		{"a role that says what was applied", refusesRights, again(clusterRole(`{"apiGroups":["apis.kcp.io"],"resources":["apibindings/status"],"verbs":["update"]}`)), ""},
		{"a role of all roles", refusesRights, strings.Replace(again(clusterRole("")), `"rules":[]`, `"aggregationRule":{"clusterRoleSelectors":[{}]}`, 1), ""},
		{"kcp's admin role", refusesSystem, toServiceAccount("admins", "cluster-admin"), ""},
		{"a name of the hub", refusesReserved, toServiceAccount("kedge:mine", "mine"), ""},
	} {
		errOut, err := virtual(a.stdin)
		require.Error(t, err, a.name)
		require.Contains(t, errOut, a.says, a.name)
	}
	_, _, err = kcp.KubectlAs(t, "bob", "", "/services/apiexport/"+s.cluster+"/gizmos/clusters/"+s.cluster, "delete", "validatingadmissionpolicybindings", tenancy.PolicyName)
	require.Error(t, err, "the claim was rejected")
	require.False(t, hasInKCP(t, "erin", s.cluster, "list", "", "configmaps"))
}

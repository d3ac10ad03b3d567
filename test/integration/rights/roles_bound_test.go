package rights

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// provider is the manifest of an API provider: its APIExport may be bound by every
// authenticated user.
const provider = `
apiVersion: apis.kcp.io/v1alpha1
kind: APIResourceSchema
metadata: {name: v1.gadgets.GROUP}
spec:
  group: GROUP
  names: {kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: apis.kcp.io/v1alpha2
kind: APIExport
metadata: {name: GROUP}
spec:
  resources:
  - {group: GROUP, name: gadgets, schema: v1.gadgets.GROUP, storage: {crd: {}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: binders}
rules:
- {apiGroups: [apis.kcp.io], resources: [apiexports], verbs: [bind]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: binders}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: binders}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:authenticated"}]
`

func apiBinding(name, path, export string) string {
	return `{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIBinding","metadata":{"name":"` + name + `"},"spec":{"reference":{"export":{"path":"` + path + `","name":"` + export + `"}}}}`
}

// The roles of a Workspace cover a provider's API as long as it is bound. Admins and
// members may write its objects, viewers may read them.
func TestRoles_followTheAPIsThatAreBound(t *testing.T) {
	t.Parallel()
	group := "gadgets.example.org"
	exporter := kcp.Universal(t)
	_, errOut, err := kcp.Kubectl(t, strings.ReplaceAll(provider, "GROUP", group), exporter, "apply", "-f", "-")
	require.NoError(t, err, errOut)

	hub := kcp.Shared(t, 1)[0]
	org := hub.CreateOrg(t, "alice", "ACME")
	made := hub.CreateWorkspace(t, "alice", org, "dev")
	ws, cluster := made.Text("uuid"), made.Text("clusterID")
	other := hub.CreateWorkspace(t, "alice", org, "without").Text("clusterID")
	framework.SignUp(t, hub, "carol", "dave", "erin")
	hub.Do(t, framework.InOrg("alice", http.MethodPatch, org, "", `{"defaultAccess":"view"}`), http.StatusOK)
	hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("dave", "member")), http.StatusCreated)
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding("carol", "member")), http.StatusCreated)
	as := func(who, stdin string, args ...string) (errOut string, err error) {
		t.Helper()
		_, errOut, err = framework.Kubectl(t, stdin, append([]string{
			"--server", hub.URL + "/clusters/" + cluster, "--certificate-authority", hub.CA, "--token", framework.Token(who),
		}, args...)...)
		return errOut, err
	}
	rights := map[string][]string{"alice": {"get", "list", "watch", "create", "delete", "patch"}, "carol": {"get", "list", "watch", "create", "delete", "patch"}, "dave": {"get", "list", "watch"}}
	gadget := func(name string) string {
		return `{"apiVersion":"` + group + `/v1","kind":"Gadget","metadata":{"name":"` + name + `","namespace":"default"}}`
	}
	for range 2 {
		for who := range rights {
			require.False(t, canIList(t, hub, who, cluster).can("get", "gadgets."+group), "it is not bound: %s", who)
		}
		for _, who := range []string{"carol", "dave"} {
			errOut, err := as(who, apiBinding("gadgets", exporter, group), "create", "-f", "-")
			require.True(t, forbidden(t, errOut, err), who)
		}
		errOut, err := as("alice", apiBinding("gadgets", exporter, group), "create", "-f", "-")
		require.NoError(t, err, errOut)
		errOut, err = as("alice", "", "wait", "--for=jsonpath={.status.phase}=Bound", "apibindings.apis.kcp.io/gadgets", "--timeout=60s")
		require.NoError(t, err, errOut)
		for who, verbs := range rights {
			framework.Eventually(t, framework.Long, func() error {
				return framework.Check(canIList(t, hub, who, cluster).can("get", "gadgets."+group), "%s got no rights", who)
			})
			said := canIList(t, hub, who, cluster)
			for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
				may := len(verbs) > 3 || strings.Contains("get list watch", verb)
				require.Equal(t, may, said.can(verb, "gadgets."+group), "%s %s", who, verb)
			}
			errOut, err := as(who, gadget("of-"+who), "create", "-f", "-")
			require.Equal(t, len(verbs) > 3, !forbidden(t, errOut, err), who)
			errOut, err = as(who, "", "get", "gadgets."+group)
			require.NoError(t, err, errOut)
			require.False(t, canIList(t, hub, "alice", other).can("get", "gadgets."+group), "another Workspace")
		}
		errOut, err = as("erin", "", "get", "gadgets."+group)
		require.Error(t, err)
		require.Contains(t, errOut, "you have no access")
		for _, who := range []string{"carol", "dave"} {
			errOut, err := as(who, "", "delete", "apibindings.apis.kcp.io", "gadgets", "--wait=false")
			require.True(t, forbidden(t, errOut, err), who)
		}
		errOut, err = as("alice", "", "delete", "apibindings.apis.kcp.io", "gadgets", "--timeout=60s")
		require.NoError(t, err, errOut)
		for who := range rights {
			framework.Eventually(t, framework.Long, func() error {
				return framework.Check(!canIList(t, hub, who, cluster).can("get", "gadgets."+group), "%s still has rights", who)
			})
		}
	}
}

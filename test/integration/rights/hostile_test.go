package rights

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// attack is a kubectl command of a hostile Workspace admin. The refusal's message
// contains says.
type attack struct{ name, says, stdin, args string }

const (
	refusesPeople   = "bindings are for ServiceAccounts of this workspace"
	refusesReserved = "the hub keeps this object"
	refusesTokens   = "hold tokens that never expire"
	refusesWebhooks = "conversion webhooks are not allowed"
	refusesUnserved = "serves at least one version"
	refusesAPIs     = "cannot be bound here"
	refusesBots     = "this binding includes bots"
	refusesKcpGroup = "this API group belongs to kcp or to the hub"
	refusesColumns  = "the jsonPath of a column"
)

func definitionWith(conversion string) string {
	return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"traps.example.org"},"spec":{"group":"example.org",` +
		`"names":{"kind":"Trap","plural":"traps"},"scope":"Cluster","conversion":` + conversion +
		`,"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`
}

// unserved is a definition whose objects kcp names nowhere.
func unserved() string {
	return strings.Replace(definitionWith(`{"strategy":"None"}`), `"served":true`, `"served":false`, 1)
}

// column is a definition with a column that finds more in a small object than there is memory for.
func column(path string) string {
	return strings.Replace(definitionWith(`{"strategy":"None"}`), `"schema":`,
		`"additionalPrinterColumns":[{"name":"A","type":"string","jsonPath":"`+path+`"}],"schema":`, 1)
}

// aUUID is in the form of the names of bots.
const aUUID = "aaaaaaaa-1111-4111-8111-000000000001"

func apiExport(name, storage string) string {
	return `{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIExport","metadata":{"name":"` + name + `.example.org"},"spec":{"resources":[` +
		`{"name":"gadgets","group":"example.org","schema":"v1.gadgets.example.org","storage":` + storage + `}]}}`
}

const webhook = `{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://127.0.0.1:1/"}}}`

const (
	botWithoutNamespace = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"bots","namespace":"default"},` +
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"kedge:workspace:admin"},"subjects":[{"kind":"ServiceAccount","name":"` + aUUID + `"}]}`
	virtualInV1alpha1 = `{"apiVersion":"apis.kcp.io/v1alpha1","kind":"APIExport","metadata":{"name":"virtual.example.org","annotations":{"apis.v1alpha2.kcp.io/resource-schemas":` +
		`"[{\"name\":\"gadgets\",\"group\":\"example.org\",\"schema\":\"v1.gadgets.example.org\",\"storage\":{\"virtual\":{\"identityHash\":\"a\"}}}]"}},"spec":{}}`
)

// attacks lists bob's attacks on his Workspace. Bob is an admin, dave a member, and carol
// a member with sudo. Bob has created the objects robots and robot.
func attacks() []attack {
	const daves = "clusterrolebinding kedge:workspace:member:user:dave"
	group := func(b, name string) string {
		return strings.Replace(strings.Replace(b, `"User"`, `"Group"`, 1), `"erin"}]`, `"`+name+`"}]`, 1)
	}
	erins := binding("erins", tenancy.ClusterRoleViewer, "erin", false)
	inNamespace := strings.Replace(strings.Replace(erins, "ClusterRoleBinding", "RoleBinding", 1), `"metadata":{`, `"metadata":{"namespace":"default",`, 1)
	bob := strings.ReplaceAll(erins, `"erin"`, `"bob"`)
	person := `{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"erin"}`
	return []attack{
		{"a binding to an accomplice", refusesPeople, erins, "create -f -"},
		{"a binding to an accomplice in a namespace", refusesPeople, inNamespace, "create -f -"},
		{"a binding to themselves", refusesPeople, bob, "create -f -"},
		{"a binding to a group", refusesPeople, group(erins, "dev"), "create -f -"},
		{"a binding to everybody", refusesPeople, group(erins, "system:authenticated"), "create -f -"},
		{"a binding to the sudo group", refusesPeople, group(erins, "kedge:workspace:x:sudo"), "create -f -"},
		{"a dry run of a binding", refusesPeople, erins, "create --dry-run=server -f -"},
		{"kubectl apply", refusesPeople, erins, "apply -f -"},
		{"server-side apply", refusesPeople, erins, "apply --server-side -f -"},
		// kubectl auth reconcile does not print the message of the refusal.
		{"kubectl auth reconcile", "", erins, "auth reconcile -f -"},
		{"a JSON patch of their own binding", refusesPeople, "", `patch clusterrolebinding robots --type=json -p [{"op":"add","path":"/subjects/-","value":` + person + `}]`},
		{"a merge patch of their own binding", refusesPeople, "", `patch clusterrolebinding robots --type=merge -p {"subjects":[` + person + `]}`},
		{"a strategic patch of their own binding", refusesPeople, "", `patch clusterrolebinding robots -p {"subjects":[` + person + `]}`},
		{"server-side apply over their own binding", refusesPeople, strings.NewReplacer(`"erins"`, `"robots"`, tenancy.ClusterRoleViewer, "readers").Replace(erins), "apply --server-side --force-conflicts -f -"},

		{"a binding to a bot", refusesBots, "", "create clusterrolebinding bots --clusterrole=kedge:workspace:admin --serviceaccount=default:" + aUUID},
		{"a binding to a bot in a namespace", refusesBots, "", "create rolebinding bots --clusterrole=kedge:workspace:admin --serviceaccount=default:" + aUUID},
		{"a binding to a bot without a namespace", refusesBots, botWithoutNamespace, "create -f -"},
		{"a binding to all ServiceAccounts", refusesBots, "", "create clusterrolebinding bots --clusterrole=kedge:workspace:admin --group=system:serviceaccounts"},
		{"a binding to those of default", refusesBots, "", "create clusterrolebinding bots --clusterrole=kedge:workspace:admin --group=system:serviceaccounts:default"},
		{"a binding to a bot as a User", refusesPeople, "", "create clusterrolebinding bots --clusterrole=kedge:workspace:admin --user=system:serviceaccount:default:" + aUUID},
		{"kubectl auth reconcile of a bot", "", strings.Replace(toServiceAccount("bots", tenancy.ClusterRoleAdmin), `"robot"`, `"`+aUUID+`"`, 1), "auth reconcile -f -"},
		{"a bot in their own binding", refusesBots, "", `patch clusterrolebinding robots --type=json -p [{"op":"add","path":"/subjects/-","value":{"kind":"ServiceAccount","namespace":"default","name":"` + aUUID + `"}}]`},
		{"an account with the name of a bot", "belong to bots", "", "create serviceaccount " + aUUID},
		{"virtual storage", "virtual storage", apiExport("virtual", `{"virtual":{"reference":{"apiGroup":"example.org","kind":"Slice","name":"a"},"identityHash":"a"}}`), "create -f -"},
		{"virtual storage in an older version", "virtual storage", virtualInV1alpha1, "create -f -"},

		{"a subject in the hub's binding", refusesReserved, "", "patch " + daves + ` --type=json -p [{"op":"add","path":"/subjects/-","value":` + person + `}]`},
		{"the subject of the hub's binding", refusesReserved, "", "patch " + daves + ` --type=json -p [{"op":"replace","path":"/subjects/0/name","value":"erin"}]`},
		{"a finalizer on the hub's binding", refusesReserved, "", "patch " + daves + ` --type=merge -p {"metadata":{"finalizers":["example.org/kept"]}}`},
		{"an owner of the hub's binding", refusesReserved, "", "patch " + daves + ` --type=merge -p {"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"x"}]}}`},
		{"the hub's labels taken off", refusesReserved, "", "label " + daves + " " + v1alpha1.ManagedByLabel + "- " + v1alpha1.UserLabel + "-"},
		{"the hub's binding deleted", refusesReserved, "", "delete " + daves},
		{"a dry run of deleting it", refusesReserved, "", "delete --dry-run=server " + daves},
		{"all of the hub's bindings deleted", refusesReserved, "", "delete --raw /apis/rbac.authorization.k8s.io/v1/clusterrolebindings?labelSelector=" + v1alpha1.ManagedByLabel},
		{"the member's role", refusesReserved, "", `patch clusterrole kedge:workspace:member --type=merge -p {"rules":[]}`},
		{"the member's role deleted", refusesReserved, "", "delete clusterrole kedge:workspace:member"},
		{"the sudo role of another", refusesReserved, "", "delete clusterrole kedge:workspace:sudo:user:carol"},
		{"a binding as if by the hub", refusesReserved, strings.Replace(toServiceAccount("mine", tenancy.ClusterRoleViewer), `"name":"mine"`, `"name":"mine","labels":{"`+v1alpha1.ManagedByLabel+`":"kedge-hub"}`, 1), "create -f -"},
		{"a name that the hub will need", refusesReserved, toServiceAccount("kedge:workspace:member:user:erin", tenancy.ClusterRoleViewer), "create -f -"},
		{"a role with a name of the hub", refusesReserved, "", "create clusterrole kedge:mine --verb=get --resource=configmaps"},
		{"a label of the hub on a ConfigMap", refusesReserved, "", "label configmap robot " + v1alpha1.UserLabel + "=dave"},
		{"the label of a bot", refusesReserved, "", "label serviceaccount robot " + v1alpha1.GroupName + "/kedge-sa=true"},
		{"the default namespace", refusesReserved, "", "label namespace default " + v1alpha1.ManagedByLabel + "-"},

		{"a token that never expires", refusesTokens, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"forever","namespace":"default","annotations":{"kubernetes.io/service-account.name":"robot"}},"type":"kubernetes.io/service-account-token"}`, "create -f -"},
		{"a conversion webhook", refusesWebhooks, definitionWith(webhook), "create -f -"},
		{"a conversion webhook in a definition", refusesWebhooks, definitionWith(webhook), "apply --server-side --force-conflicts -f -"},
		{"a definition whose objects the meter would not find", refusesUnserved, unserved(), "create -f -"},
		{"a definition that hides its objects", refusesUnserved, unserved(), "apply --server-side --force-conflicts -f -"},
		{
			"a definition in a group of kcp", refusesKcpGroup,
			strings.ReplaceAll(definitionWith(`{"strategy":"None"}`), "example.org", "core.kcp.io"), "create -f -",
		},
		{
			"a definition in the group of the hub", refusesKcpGroup,
			strings.ReplaceAll(definitionWith(`{"strategy":"None"}`), "example.org", v1alpha1.GroupName), "apply --server-side -f -",
		},
		{"a column that descends", refusesColumns, column(".a..a..a..a"), "create -f -"},
		{"a column that descends in a definition", refusesColumns, column(".a..a..a..a"), "apply --server-side --force-conflicts -f -"},
		{"a column of a field named many times", refusesColumns, column(".a['a','a']['a','a']"), "create -f -"},
		{"kcp's API of workspaces", refusesAPIs, apiBinding("mine", "root", "tenancy.kcp.io"), "create -f -"},
		{"kcp's API of workspaces, in another version", refusesAPIs, strings.Replace(apiBinding("mine", "root", "tenancy.kcp.io"), "v1alpha2", "v1alpha1", 1), "create -f -"},
		{"kcp's topology", refusesAPIs, apiBinding("mine", "root", "topology.kcp.io"), "create -f -"},
		{"the hub's access export", "orbidden", apiBinding("mine", "root:anything", "access.kedge.faros.sh"), "create -f -"},
	}
}

func TestHostileAdmin_isRefusedByKcp(t *testing.T) {
	t.Parallel()
	s := newWorkspaceScene(t)
	// The positive controls: the policy allows what tenants may do.
	for _, c := range []struct{ stdin, args string }{
		{"", "create serviceaccount robot"},
		{"", "create configmap robot"},
		{"", "create clusterrole readers --verb=get,list --resource=configmaps"},
		{"", "create role readers --verb=get --resource=configmaps"},
		{toServiceAccount("robots", "readers"), "create -f -"},
		{toServiceAccount("robots", "readers"), "auth reconcile -f -"},
		{"", "create rolebinding robots --role=readers --serviceaccount=default:robot"},
		{"", "create rolebinding all-robots --clusterrole=readers --group=system:serviceaccounts:ci"},
		{"", "create rolebinding others --clusterrole=readers --serviceaccount=ci:" + aUUID},
		{"", "create namespace ci"},
		{"", "create serviceaccount " + aUUID + " --namespace ci"},
		{"", `patch clusterrolebinding robots --type=merge -p {"metadata":{"finalizers":["example.org/kept"],"labels":{"app":"robots"}}}`},
		{"", "create secret generic plain --from-literal=a=b"},
		{"", "create token robot --duration 10m"},
		{"", "label configmap robot app=robot"},
		{column(".status.conditions[?(@.type=='Ready')].status"), "apply --server-side -f -"},
		{definitionWith(`{"strategy":"None"}`), "apply --server-side -f -"},
		{"", "delete rolebindings all-robots others"},
		{apiExport("plain", `{"crd":{}}`), "create -f -"},
	} {
		errOut, err := s.kubectl(t, "bob", c.stdin, c.args)
		require.NoError(t, err, "%s: %s", c.args, errOut)
	}
	for _, a := range attacks() {
		t.Run(a.name, func(t *testing.T) {
			errOut, err := s.kubectl(t, "bob", a.stdin, a.args)
			require.Error(t, err)
			require.Contains(t, errOut, a.says)
		})
	}
	s.whole(t)
	accessBinding, errOut, err := kcp.Kubectl(t, "", s.cluster, "get", "apibindings.apis.kcp.io", "-o", `jsonpath={.items[?(@.spec.reference.export.name=="access.kedge.faros.sh")].metadata.name}`)
	require.NoError(t, err, errOut)
	for _, args := range []string{
		"delete apibindings.apis.kcp.io " + accessBinding, `patch apibindings.apis.kcp.io ` + accessBinding + ` --type=merge -p {"spec":{"permissionClaims":[]}}`,
		`patch apibindings.apis.kcp.io ` + accessBinding + ` --type=merge -p {"metadata":{"finalizers":[]}}`,
	} {
		errOut, err := s.kubectl(t, "bob", "", args)
		require.Error(t, err, args)
		require.Contains(t, errOut, "the hub keeps this binding")
	}
	// kcp does not serve the API of workspaces here, so a tenant cannot create children.
	errOut, err = s.kubectl(t, "bob", `{"apiVersion":"tenancy.kcp.io/v1alpha1","kind":"Workspace","metadata":{"name":"child"}}`, "create -f -")
	require.Error(t, err)
	require.Contains(t, errOut, "no matches for kind")
}

// The policy refuses every attack, so a demotion only has to change the bindings of the
// Membership. No attack survives it.
func TestHostileAdmin_keepsNothingAfterADemotion(t *testing.T) {
	t.Parallel()
	s := newWorkspaceScene(t)
	errOut, err := s.kubectl(t, "bob", "", "create serviceaccount robot")
	require.NoError(t, err, errOut)
	errOut, err = s.kubectl(t, "bob", toServiceAccount("robots", tenancy.ClusterRoleViewer), "create -f -")
	require.NoError(t, err, errOut)
	robots := func() string {
		out, errOut, err := kcp.Kubectl(t, "", s.cluster, "get", "clusterrolebinding", "robots", "-o", "jsonpath={.metadata.uid}")
		require.NoError(t, err, errOut)
		return out
	}
	before := robots()
	for _, a := range attacks() {
		_, _ = s.kubectl(t, "bob", a.stdin, a.args)
	}
	s.hub.Do(t, framework.InWorkspace("alice", http.MethodPatch, s.org, s.ws, "/members/bob", framework.WithRole("member")), http.StatusOK)
	require.Equal(t, []string{tenancy.ClusterRoleMember}, s.p.RolesIn(t, s.cluster, "bob"))
	framework.Eventually(t, framework.Long, func() error {
		return framework.Check(!hasInKCP(t, "bob", s.cluster, "create", "rbac.authorization.k8s.io", "clusterroles"), "bob can still create roles")
	})
	for _, a := range attacks() {
		_, err := s.kubectl(t, "bob", a.stdin, a.args)
		require.Error(t, err, a.name)
	}
	require.False(t, hasInKCP(t, "bob", s.cluster, "create", "", "serviceaccounts/token"))
	require.False(t, hasInKCP(t, "erin", s.cluster, "list", "", "configmaps"))
	require.Equal(t, before, robots(), "what is bound to ServiceAccounts stays")
}

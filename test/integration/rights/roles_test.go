package rights

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// The roles that an attempt succeeds for.
const (
	everyRole = "admin member viewer"
	workers   = "admin member"
	admins    = "admin"
	nobody    = ""
)

// attempts are run as every role with the real kubectl. The user's name replaces %s, so
// that two users do not create the same object.
var attempts = []struct {
	verb, resource string
	by             string
	args           string
	stdin          string
}{
	{"create", "configmaps", workers, "create configmap cm-%s --from-literal=a=b", ""},
	{"get", "configmaps", everyRole, "get configmap shared", ""},
	{"list", "configmaps", everyRole, "get configmaps", ""},
	{"patch", "configmaps", workers, "annotate configmap shared by=%s --overwrite", ""},
	{"delete", "configmaps", workers, "delete configmap mine-%s", ""},
	{"deletecollection", "configmaps", workers, "delete --raw /api/v1/namespaces/default/configmaps?labelSelector=none=%s", ""},
	{"create", "secrets", workers, "create secret generic s-%s --from-literal=a=b", ""},
	{"get", "secrets", workers, "get secret shared", ""},
	{"list", "secrets", workers, "get secrets", ""},
	{"create", "namespaces", workers, "create namespace ns-%s", ""},
	{"create", "serviceaccounts", admins, "create serviceaccount sa-%s", ""},
	{"create", "serviceaccounts/token", admins, "create token shared --duration 10m", ""},
	{"create", "resourcequotas", nobody, "create quota q-%s --hard=count/clusterrolebindings.rbac.authorization.k8s.io=1", ""},
	{"list", "resourcequotas", everyRole, "get resourcequotas", ""},
	{"create", "tokenreviews.authentication.k8s.io", nobody, "create -f -", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"%s"}}`},
	{"create", "certificatesigningrequests.certificates.k8s.io", nobody, "create -f -", `{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest","metadata":{"name":"c-%s"},"spec":{"request":"eA==","signerName":"example.com/x","usages":["client auth"]}}`},
	{"create", "leases.coordination.k8s.io", workers, "create -f -", `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"l-%s","namespace":"default"}}`},
	{"list", "clusterroles.rbac.authorization.k8s.io", everyRole, "get clusterroles", ""},
	{"create", "clusterroles.rbac.authorization.k8s.io", admins, "create clusterrole cr-%s --verb=get --resource=configmaps", ""},
	{"create", "clusterrolebindings.rbac.authorization.k8s.io", admins, "create clusterrolebinding crb-%s --clusterrole=kedge:workspace:viewer --serviceaccount=default:shared", ""},
	{"create", "roles.rbac.authorization.k8s.io", admins, "create role r-%s --verb=get --resource=configmaps", ""},
	{"create", "rolebindings.rbac.authorization.k8s.io", admins, "create rolebinding rb-%s --clusterrole=kedge:workspace:viewer --serviceaccount=default:shared", ""},
	{"delete", "clusterrolebindings.rbac.authorization.k8s.io", admins, "delete clusterrolebinding spare-%s", ""},
	{"list", "apibindings.apis.kcp.io", everyRole, "get apibindings.apis.kcp.io", ""},
	{"delete", "apibindings.apis.kcp.io", admins, "delete apibindings.apis.kcp.io none-%s --ignore-not-found", ""},
	{"create", "apiexports.apis.kcp.io", admins, "create -f -", `{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIExport","metadata":{"name":"e-%s"}}`},
	{"create", "customresourcedefinitions.apiextensions.k8s.io", admins, "create -f -", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.%s.example.org"},"spec":{"group":"%s.example.org","names":{"kind":"Thing","plural":"things"},"scope":"Cluster","versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`},
	{"create", "validatingwebhookconfigurations.admissionregistration.k8s.io", nobody, "create -f -", `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"w-%s"}}`},
	{"create", "mutatingadmissionpolicies.admissionregistration.k8s.io", nobody, "create -f -", `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingAdmissionPolicy","metadata":{"name":"m-%s"},"spec":{"reinvocationPolicy":"Never","matchConstraints":{"resourceRules":[{"apiGroups":["rbac.authorization.k8s.io"],"apiVersions":["*"],"operations":["CREATE"],"resources":["clusterroles"]}]},"mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":"[JSONPatch{op: \"add\", path: \"/rules/-\", value: Object.rules{apiGroups: [\"*\"], resources: [\"*\"], verbs: [\"*\"]}}]"}}]}}`},
	{"create", "validatingadmissionpolicies.admissionregistration.k8s.io", nobody, "create -f -", `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"v-%s"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":["rbac.authorization.k8s.io"],"apiVersions":["*"],"operations":["*"],"resources":["*"]}]},"validations":[{"expression":"false"}]}}`},
	{"get", "logicalclusters.core.kcp.io", everyRole, "get logicalclusters.core.kcp.io cluster", ""},
	{"patch", "logicalclusters.core.kcp.io", nobody, "annotate logicalclusters.core.kcp.io cluster by=%s", ""},
	{"delete", "logicalclusters.core.kcp.io", nobody, "delete logicalclusters.core.kcp.io cluster --wait=false", ""},
	{"escalate", "clusterroles.rbac.authorization.k8s.io", nobody, "create clusterrole all-%s --verb=* --resource=*.*", ""},
	{"bind", "clusterroles.rbac.authorization.k8s.io", nobody, "create clusterrolebinding top-%s --clusterrole=above --serviceaccount=default:shared", ""},
	{"impersonate", "users", nobody, "get configmaps --as alice", ""},
}

// tenancy.md defines the roles. kubectl auth can-i --list and real requests through the
// hub agree with this definition.
func TestRoles_areWhatTheySayAndWhatTheyDo(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	p := newPlatform(t, hub.Options.RootWorkspace)
	org := hub.CreateOrg(t, "alice", "ACME")
	made := hub.CreateWorkspace(t, "alice", org, "dev")
	ws, cluster := made.Text("uuid"), made.Text("clusterID")
	people := map[string]string{
		"bob":   "admin",  // of the Workspace, without a Membership in the Org
		"carol": "member", // of the Workspace, without a Membership in the Org
		"dave":  "viewer", // through the Org: an Org member with defaultAccess view
		"grace": "admin",  // through the Org: an Org admin without a Membership in the Workspace (O-15)
		"frank": "member", // of the Workspace and of the Org: defaultAccess does not reduce the role
	}
	framework.SignUp(t, hub, "bob", "carol", "dave", "erin", "frank", "grace")
	hub.Do(t, framework.InOrg("alice", http.MethodPatch, org, "", `{"defaultAccess":"view"}`), http.StatusOK)
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding("bob", "admin")), http.StatusCreated)
	for name, r := range map[string]string{"dave": "member", "frank": "member", "grace": "admin"} {
		hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding(name, r)), http.StatusCreated)
	}
	for _, name := range []string{"carol", "frank"} {
		hub.Do(t, framework.InWorkspace("bob", http.MethodPost, org, ws, "/members", framework.Adding(name, "member")), http.StatusCreated)
	}
	for name, r := range people {
		require.Equal(t, []string{"kedge:workspace:" + r}, p.RolesIn(t, cluster, name), "one binding, to one role: %s", name)
		require.Len(t, p.BindingVersions(t, cluster, name), 1, name)
	}
	for _, args := range []string{"create configmap shared", "create secret generic shared", "create serviceaccount shared"} {
		_, errOut, err := hub.Kubectl(t, "alice", cluster, strings.Fields(args)...)
		require.NoError(t, err, errOut)
	}
	// kcp's admin creates this role, because no tenant could create it through the hub.
	_, errOut, err := kcp.Kubectl(t, "", cluster, "create", "clusterrole", "above", "--verb=*", "--resource=*.*")
	require.NoError(t, err, errOut)

	for name, role := range people {
		t.Run(role+" "+name, func(t *testing.T) {
			t.Parallel()
			for _, args := range []string{"create configmap mine-" + name, "create clusterrolebinding spare-" + name + " --clusterrole=kedge:workspace:viewer --serviceaccount=default:shared"} {
				_, errOut, err := hub.Kubectl(t, "alice", cluster, strings.Fields(args)...)
				require.NoError(t, err, errOut)
			}
			said := canIList(t, hub, name, cluster)
			for _, a := range attempts {
				may := strings.Contains(a.by, role)
				require.Equal(t, may, said.can(a.verb, a.resource), "can-i --list: %s %s: %v", a.verb, a.resource, said.resources)
				args := strings.Fields(strings.ReplaceAll(a.args, "%s", name))
				_, errOut, err := framework.Kubectl(t, strings.ReplaceAll(a.stdin, "%s", name), append([]string{
					"--server", hub.URL + "/clusters/" + cluster, "--certificate-authority", hub.CA, "--token", framework.Token(name),
				}, args...)...)
				require.Equal(t, may, !forbidden(t, errOut, err), "%s: %s", a.args, errOut)
			}
			for url := range said.urls {
				require.NotContains(t, []string{"*", "/*"}, url, "it would be the debug handlers of all of kcp")
			}
			for _, url := range []string{"/metrics", "/debug/pprof/profile", "/logs", "/configz"} {
				out, _, _ := hub.Kubectl(t, name, cluster, "auth", "can-i", "get", url)
				require.Contains(t, []string{"no\n", "no - access denied\n"}, out, url)
			}
			for _, verb := range []string{"*", "escalate", "bind", "impersonate", "approve", "sign"} {
				require.NotContains(t, said.granted(), verb)
			}
			require.Equal(t, []string{"access"}, said.urls["/"][:1], "kcp's door: %v", said.urls)
		})
	}
	t.Run("the positive control of the listing", func(t *testing.T) {
		t.Parallel()
		all := parseListing(t, "Resources   Non-Resource URLs   Resource Names   Verbs\n*.*         []                  []               [*]\n            [*]                 []               [get]\nusers       []                  [bob]            [impersonate]\n")
		require.True(t, all.can("delete", "logicalclusters.core.kcp.io"))
		require.Contains(t, all.urls, "*")
		require.Subset(t, all.granted(), []string{"*", "impersonate"})
	})
	t.Run("nobody", func(t *testing.T) {
		t.Parallel()
		_, errOut, err := hub.Kubectl(t, "erin", cluster, "auth", "can-i", "--list")
		require.True(t, forbidden(t, "forbidden "+errOut, err))
		require.Contains(t, errOut, "you have no access to this cluster")
	})
}

// With defaultAccess view, Org members are viewers of every Workspace of the Org. With
// none, they lose this access.
func TestDefaultAccess_isGivenAndTaken(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	p := newPlatform(t, hub.Options.RootWorkspace)
	org := hub.CreateOrg(t, "alice", "ACME")
	cluster := hub.CreateWorkspace(t, "alice", org, "dev").Text("clusterID")
	framework.SignUp(t, hub, "bob", "carol")
	hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	for range 2 {
		_, errOut, err := hub.Kubectl(t, "bob", cluster, "get", "configmaps")
		require.Error(t, err)
		require.Contains(t, errOut, "you have no access")
		require.Empty(t, p.RolesIn(t, cluster, "bob"))

		hub.Do(t, framework.InOrg("alice", http.MethodPatch, org, "", `{"defaultAccess":"view"}`), http.StatusOK)
		framework.Eventually(t, framework.Long, func() error {
			_, errOut, err := hub.Kubectl(t, "bob", cluster, "get", "configmaps")
			return framework.Check(err == nil, "%s", errOut)
		})
		require.Equal(t, []string{tenancy.ClusterRoleViewer}, p.RolesIn(t, cluster, "bob"))
		_, errOut, err = hub.Kubectl(t, "bob", cluster, "get", "secrets")
		require.True(t, forbidden(t, errOut, err))
		_, errOut, err = hub.Kubectl(t, "carol", cluster, "get", "configmaps")
		require.Error(t, err, "who is not in the Org")
		require.Contains(t, errOut, "you have no access")
		require.Empty(t, p.RolesIn(t, cluster, "carol"))
		later := hub.CreateWorkspace(t, "alice", org, "later").Text("clusterID")
		require.Equal(t, []string{tenancy.ClusterRoleViewer}, p.RolesIn(t, later, "bob"))

		hub.Do(t, framework.InOrg("alice", http.MethodPatch, org, "", `{"defaultAccess":"none"}`), http.StatusOK)
		framework.Eventually(t, framework.Long, func() error {
			return framework.Check(len(p.RolesIn(t, cluster, "bob"))+len(p.RolesIn(t, later, "bob")) == 0, "he is still bound")
		})
	}
}

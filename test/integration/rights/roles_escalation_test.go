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

// toServiceAccount returns a ClusterRoleBinding to a ServiceAccount, which tenants may
// write.
func toServiceAccount(name, role string) string {
	return `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"` + name + `"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"` + role + `"},
		"subjects":[{"kind":"ServiceAccount","namespace":"default","name":"robot"}]}`
}

// binding returns a ClusterRoleBinding to a user. managed adds the labels of the hub's
// own bindings.
func binding(name, role, user string, managed bool) string {
	labels := "{}"
	if managed {
		labels = `{"` + v1alpha1.ManagedByLabel + `":"` + v1alpha1.ManagedByHub + `","` + v1alpha1.UserLabel + `":"` + user + `"}`
	}
	return `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"` + name + `","labels":` + labels + `},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"` + role + `"},
		"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"` + user + `"}]}`
}

// workspaceScene is one Workspace in alice's Org. Bob is its admin, carol a member with
// sudo, and dave a member. The other users have no access.
type workspaceScene struct {
	hub              *framework.Hub
	p                platform
	org, ws, cluster string
}

func newWorkspaceScene(t *testing.T) workspaceScene {
	t.Helper()
	hub := kcp.Shared(t, 1)[0]
	s := workspaceScene{hub: hub, p: newPlatform(t, hub.Options.RootWorkspace)}
	s.org = s.hub.CreateOrg(t, "alice", "ACME")
	made := s.hub.CreateWorkspace(t, "alice", s.org, "dev")
	s.ws, s.cluster = made.Text("uuid"), made.Text("clusterID")
	framework.SignUp(t, s.hub, "bob", "carol", "dave", "erin", "frank")
	sudo := framework.Adding("carol", "member")
	sudo["sudo"] = true
	for _, body := range []map[string]any{framework.Adding("bob", "admin"), sudo, framework.Adding("dave", "member")} {
		s.hub.Do(t, framework.InWorkspace("alice", http.MethodPost, s.org, s.ws, "/members", body), http.StatusCreated)
	}
	for _, name := range []string{"bob", "carol", "dave"} {
		s.hub.Enters(t, name, s.cluster)
	}
	return s
}

// kubectl splits args at spaces and runs kubectl through the hub.
func (s workspaceScene) kubectl(t testing.TB, as, stdin, args string) (errOut string, err error) {
	t.Helper()
	_, errOut, err = framework.Kubectl(t, stdin, append([]string{
		"--server", s.hub.URL + "/clusters/" + s.cluster, "--certificate-authority", s.hub.CA, "--token", framework.Token(as),
	}, strings.Fields(args)...)...)
	return errOut, err
}

// A Workspace admin may write RBAC objects. They cannot grant a permission that the
// admin's role lacks.
func TestWorkspaceAdmin_cannotRiseAboveTheirRole(t *testing.T) {
	t.Parallel()
	s := newWorkspaceScene(t)
	for _, name := range []string{"cluster-admin", "above"} {
		_, errOut, err := kcp.Kubectl(t, "", s.cluster, "create", "clusterrole", name, "--verb=*", "--resource=*.*")
		require.NoError(t, err, errOut)
	}
	const role = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"mine"},`
	add := func(rule string) string {
		return `patch clusterrole kedge:workspace:admin --type=merge -p {"rules":[` + rule + `]}`
	}
	for _, tc := range []struct{ name, stdin, args string }{
		{"wildcard verbs in the admin's role", "", add(`{"apiGroups":[""],"resources":["configmaps"],"verbs":["*"]}`)},
		{"a wildcard group in the admin's role", "", add(`{"apiGroups":["*"],"resources":["*"],"verbs":["get"]}`)},
		{"the LogicalCluster in the admin's role", "", add(`{"apiGroups":["core.kcp.io"],"resources":["logicalclusters"],"verbs":["patch"]}`)},
		{"escalate in the admin's role", "", add(`{"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles"],"verbs":["escalate"]}`)},
		{"bind in the admin's role", "", add(`{"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles"],"verbs":["bind"]}`)},
		{"impersonation in the admin's role", "", add(`{"apiGroups":[""],"resources":["users"],"verbs":["impersonate"]}`)},
		{"all URLs in the admin's role", "", add(`{"nonResourceURLs":["*"],"verbs":["get"]}`)},
		{"the debug handlers in the admin's role", "", add(`{"nonResourceURLs":["/debug/*"],"verbs":["get"]}`)},
		{"aggregation of whatever roles come to be", role + `"aggregationRule":{"clusterRoleSelectors":[{}]}}`, "create -f -"},
		{"a role of impersonation", role + `"rules":[{"apiGroups":[""],"resources":["groups"],"resourceNames":["system:masters"],"verbs":["impersonate"]}]}`, "create -f -"},
		{"cluster-admin for another", binding("x", "cluster-admin", "dave", false), "create -f -"},
		{"a role above for themselves", binding("x", "above", "bob", false), "create -f -"},
		{"a role above for a foreigner", binding("x", "above", "erin", false), "create -f -"},
		{"a role above, as if by the hub", binding("x", "above", "bob", true), "create -f -"},
		{"the sudo role of another", binding("x", "kedge:workspace:sudo:user:carol", "bob", false), "create -f -"},
		{"above in a namespace", "", "create rolebinding x --clusterrole=above --user=bob"},
		{"a role above for a ServiceAccount", toServiceAccount("x", "above"), "create -f -"},
		{"cluster-admin for a ServiceAccount", toServiceAccount("x", "cluster-admin"), "create -f -"},
		{"another role in the hub's own binding", strings.Replace(binding("kedge:workspace:member:user:dave", "above", "dave", true), "member:user", "admin:user", 1), "create -f -"},
	} {
		errOut, err := s.kubectl(t, "bob", tc.stdin, tc.args)
		require.Error(t, err, tc.name)
		require.True(t, forbidden(t, errOut, err), tc.name)
	}
	for _, person := range []string{"bob", "dave", "erin"} {
		require.False(t, hasInKCP(t, person, s.cluster, "patch", "core.kcp.io", "logicalclusters"))
		require.False(t, hasInKCP(t, person, s.cluster, "impersonate", "", "users"))
	}
	// The positive controls: an admin may grant the permissions of the admin's role.
	for _, c := range []struct{ stdin, args string }{
		{role + `"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get"]}]}`, "create -f -"},
		{toServiceAccount("x", "mine"), "create -f -"},
		{toServiceAccount("y", tenancy.ClusterRoleAdmin), "create -f -"},
	} {
		errOut, err := s.kubectl(t, "bob", c.stdin, c.args)
		require.NoError(t, err, errOut)
	}
}

// whole waits until every user has exactly the rights of their Memberships.
func (s workspaceScene) whole(t *testing.T) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		held, err := s.p.BindingsIn(t, s.cluster)
		if err != nil {
			return err
		}
		for user, want := range map[string]string{
			"alice": "kedge:workspace:admin", "bob": "kedge:workspace:admin", "dave": "kedge:workspace:member",
			"carol": "kedge:workspace:member kedge:workspace:sudo:user:carol", "erin": "",
		} {
			if has := strings.Join(framework.RolesOf(held, user), " "); has != want {
				return framework.Check(false, "%s has %q instead of %q", user, has, want)
			}
		}
		for _, right := range []struct {
			user, verb, group, resource string
			has                         bool
		}{
			{"dave", "create", "", "configmaps", true},
			{"dave", "create", "", "serviceaccounts/token", false},
			{"dave", "create", "rbac.authorization.k8s.io", "clusterroles", false},
			{"erin", "list", "", "configmaps", false},
		} {
			if hasInKCP(t, right.user, s.cluster, right.verb, right.group, right.resource) != right.has {
				return framework.Check(false, "%v is not so", right)
			}
		}
		errOut, err := s.kubectl(t, "carol", "", "get clusterroles --as carol --as-group "+tenancy.SudoGroup(s.ws))
		return framework.Check(err == nil, "sudo: %s", errOut)
	})
}

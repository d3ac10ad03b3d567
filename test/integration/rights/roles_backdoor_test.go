package rights

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// While they are admin, people can bind themselves to whatever they have. It ends
// with their role, in the Workspaces of the Org where it was the Org's; what others
// are bound to stays.
func TestARoleThatAdminsBoundThemselvesToEndsWithTheirs(t *testing.T) {
	t.Parallel()
	s := newWorkspaceScene(t)
	s.hub.Do(t, framework.InOrg("alice", http.MethodPost, s.org, "/members", framework.Adding("frank", "admin")), http.StatusCreated)
	s.hub.Enters(t, "frank", s.cluster)
	plant := func(as, stdin string) {
		errOut, err := s.kubectl(t, as, stdin, "create -f -")
		require.NoError(t, err, errOut)
	}
	inNamespace := func(name string, people ...string) string {
		var subjects []string
		for _, user := range people {
			subjects = append(subjects, `{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"`+user+`"}`)
		}
		return `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"` + name + `","namespace":"default"},
			"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"backdoor"},"subjects":[` + strings.Join(subjects, ",") + `]}`
	}
	plant("bob", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"backdoor"},
		"rules":[{"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles","roles"],"verbs":["create"]}]}`)
	for _, person := range []string{"bob", "frank"} {
		plant(person, binding("backdoor-"+person, "backdoor", person, false))
		plant(person, binding("all-"+person, tenancy.ClusterRoleAdmin, person, false))
		plant(person, inNamespace("alone-"+person, person))
		plant(person, inNamespace("beside-dave-"+person, person, "dave"))
	}
	plant("bob", binding("daves", "backdoor", "dave", false))
	named := func() string {
		out, errOut, err := kcp.Kubectl(t, "", s.cluster, "get", "clusterrolebindings,rolebindings", "-A",
			"-o", `jsonpath={range .items[*]}{.metadata.name}={range .subjects[*]}{.kind}:{.name},{end}{"\n"}{end}`)
		require.NoError(t, err, errOut)
		return out
	}
	for _, person := range []string{"bob", "frank"} {
		require.Equal(t, 5, strings.Count(named(), "User:"+person+","), "the hub's own, and four by hand:\n%s", named())
	}

	// Bob defends himself: he writes to what is to be taken from him all the time.
	writing, defended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(defended)
		last := "backdoor-bob"
		for i := 0; ; i++ {
			for _, name := range []string{"kedge:workspace:admin:user:bob", "all-bob", last} {
				a, err := s.hub.Try(call{
					As: "bob", Method: http.MethodPatch, Path: "/clusters/" + s.cluster + "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/" + name,
					Header: http.Header{"Content-Type": {"application/merge-patch+json"}}, Body: fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d"}}}`, i),
				})
				failed := err != nil || a.Code != http.StatusOK
				if i == 0 && (failed || name == last) {
					writing <- framework.Check(!failed, "%s: %v %d %s", name, err, a.Code, a.Raw)
				}
				if err != nil || a.Code == http.StatusForbidden || i == 0 && failed {
					return
				}
			}
		}
	}()
	select {
	case err := <-writing:
		require.NoError(t, err, "he can, to begin with")
	case <-time.After(framework.Long):
		require.Fail(t, "he writes nothing")
	}
	s.hub.Do(t, framework.InWorkspace("alice", http.MethodPatch, s.org, s.ws, "/members/bob", framework.WithRole("member")), http.StatusOK)
	select {
	case <-defended:
	case <-time.After(framework.Long):
		require.Fail(t, "he still writes to what was taken from him")
	}
	require.Equal(t, 1, strings.Count(named(), "User:bob,"), "%s", named())
	require.Contains(t, named(), "kedge:workspace:member:user:bob=User:bob,")
	s.hub.Do(t, framework.InOrg("alice", http.MethodDelete, s.org, "/members/frank", nil), http.StatusNoContent)
	require.NotContains(t, named(), "User:frank,")
	for _, person := range []string{"bob", "frank"} {
		framework.Eventually(t, framework.Long, func() error {
			return framework.Check(!hasInKCP(t, person, s.cluster, "create", "rbac.authorization.k8s.io", "clusterroles"), "%s can still make roles", person)
		})
		require.Contains(t, named(), "beside-dave-"+person+"=User:dave,")
		require.NotContains(t, named(), "alone-"+person, "what binds nobody goes")
	}
	errOut, err := s.kubectl(t, "bob", "", "create clusterrole mine --verb=get --resource=configmaps")
	require.True(t, forbidden(t, errOut, err), errOut)
	// The positive control: what names others stands, and so does what roles are given.
	require.Contains(t, named(), "daves=User:dave,")
	require.True(t, hasInKCP(t, "dave", s.cluster, "create", "rbac.authorization.k8s.io", "clusterroles"))
	s.hub.Do(t, framework.InWorkspace("alice", http.MethodPatch, s.org, s.ws, "/members/bob", `{"roles":[{"name":"backdoor"}]}`), http.StatusOK)
	framework.Eventually(t, framework.Long, func() error {
		return framework.Check(hasInKCP(t, "bob", s.cluster, "create", "rbac.authorization.k8s.io", "clusterroles"), "the role of the Membership is not bound")
	})
}

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

const exampleFinalizer = `,"finalizers":["example.com/held"]`

// deleting lists the bindings of a Workspace that wait for their finalizers.
func (s workspaceScene) deleting(t testing.TB) []string {
	t.Helper()
	out, errOut, err := kcp.Kubectl(t, "", s.cluster, "get", "clusterrolebindings,rolebindings", "-A",
		"-o", `jsonpath={range .items[?(@.metadata.deletionTimestamp)]}{.kind}/{.metadata.name}{"\n"}{end}`)
	require.NoError(t, err, errOut)
	return strings.Fields(out)
}

// copied waits until kcp has marked a ClusterRoleBinding as one that it copies.
func (s workspaceScene) copied(t testing.TB, name string) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		out, errOut, err := kcp.Kubectl(t, "", s.cluster, "get", "clusterrolebinding", name, "-o", `jsonpath={.metadata.annotations}`)
		return framework.Check(err == nil && strings.Contains(out, "internal.kcp.io/replicate"), "%s is not copied: %v %s %s", name, err, errOut, out)
	})
}

// kcp goes by a copy of each ClusterRoleBinding as well, and does not write to it while
// the binding waits for its finalizers: whoever deletes a binding of theirs before they
// are demoted would keep what the copy says.
func TestABindingThatADemotedAdminHasDeletedBeforehandBindsNoMore(t *testing.T) {
	t.Parallel()
	s := newWorkspaceScene(t)
	own := "kedge:workspace:admin:user:bob"
	create := func(body string) {
		errOut, err := s.kubectl(t, "bob", body, "create -f -")
		require.NoError(t, err, errOut)
	}
	// The exports are why kcp copies the role and its bindings.
	create(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"quotas"},"rules":[
		{"apiGroups":[""],"resources":["resourcequotas"],"verbs":["create"]},
		{"apiGroups":["apis.kcp.io"],"resources":["apiexports/content"],"verbs":["get"]}]}`)
	create(byHand("ClusterRoleBinding", "held", "bob", exampleFinalizer))
	create(byHand("ClusterRoleBinding", "no-longer-named", "bob", exampleFinalizer))
	create(strings.Replace(byHand("ClusterRoleBinding", "other-role", "bob", exampleFinalizer), tenancy.ClusterRoleAdmin, "quotas", 1))
	create(strings.Replace(byHand("ClusterRoleBinding", "among-others", "bob", exampleFinalizer),
		`"subjects":[`, `"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"dave"},`, 1))
	create(byHand("RoleBinding", "held", "bob", `,"namespace":"default"`+exampleFinalizer))
	// The positive control: what others hold, and do not delete, is left alone.
	create(byHand("ClusterRoleBinding", "daves", "dave", exampleFinalizer))
	errOut, err := s.kubectl(t, "bob", "", "patch clusterrolebinding "+own+` --type=merge -p {"metadata":{"finalizers":["example.com/held"]}}`)
	require.NoError(t, err, errOut)
	for _, name := range []string{"held", "no-longer-named", "other-role", "among-others", own} {
		s.copied(t, name)
	}
	for _, what := range []string{"clusterrolebinding held no-longer-named other-role among-others", "rolebinding -n default held", "clusterrolebinding " + own} {
		errOut, err = s.kubectl(t, "bob", "", "delete --wait=false "+what)
		require.NoError(t, err, errOut)
	}
	errOut, err = s.kubectl(t, "bob", "", `patch clusterrolebinding no-longer-named --type=merge -p {"subjects":[]}`)
	require.NoError(t, err, errOut)
	require.Subset(t, s.deleting(t), []string{
		"ClusterRoleBinding/held", "ClusterRoleBinding/no-longer-named", "ClusterRoleBinding/other-role", "ClusterRoleBinding/among-others", "RoleBinding/held",
	})
	require.True(t, hasInKCP(t, "bob", s.cluster, "create", "", "resourcequotas"))

	s.hub.Do(t, framework.InWorkspace("alice", http.MethodPatch, s.org, s.ws, "/members/bob", framework.WithRole("member")), http.StatusOK)
	framework.Eventually(t, framework.Long, func() error {
		for group, resource := range map[string]string{"rbac.authorization.k8s.io": "clusterroles", "": "resourcequotas"} {
			if hasInKCP(t, "bob", s.cluster, "create", group, resource) {
				return fmt.Errorf("bob can still make %s", resource)
			}
		}
		return nil
	})
	require.Equal(t, "ClusterRoleBinding/kedge:workspace:member:user:bob=User:bob,", s.naming(t, "bob"))
	require.Equal(t, []string{"RoleBinding/held"}, s.deleting(t), "kcp copies no RoleBindings, so it is left to whom it waits for")
	errOut, err = s.kubectl(t, "bob", "", "create clusterrole mine --verb=get --resource=configmaps")
	require.True(t, forbidden(t, errOut, err), errOut)

	require.True(t, hasInKCP(t, "dave", s.cluster, "create", "rbac.authorization.k8s.io", "clusterroles"))
	out, errOut, err := kcp.Kubectl(t, "", s.cluster, "get", "clusterrolebinding", "daves", "-o", "jsonpath={.metadata.finalizers}")
	require.NoError(t, err, errOut)
	require.Contains(t, out, "example.com/held")
}

// What the hub keeps for its people is made anew where a tenant holds it in its deletion.
func TestAHubsOwnThatATenantHoldsInItsDeletionIsMadeAnew(t *testing.T) {
	t.Parallel()
	s := newWorkspaceScene(t)
	for _, what := range []string{"clusterrolebinding kedge:workspace:member:user:dave", "clusterrole kedge:workspace:member"} {
		before, errOut, err := kcp.Kubectl(t, "", s.cluster, append([]string{"get"}, append(strings.Fields(what), "-o", "jsonpath={.metadata.uid}")...)...)
		require.NoError(t, err, errOut)
		errOut, err = s.kubectl(t, "bob", "", "patch "+what+` --type=merge -p {"metadata":{"finalizers":["example.com/held"]}}`)
		require.NoError(t, err, errOut)
		errOut, err = s.kubectl(t, "bob", "", "delete --wait=false "+what)
		require.NoError(t, err, errOut)
		framework.Eventually(t, framework.Long, func() error {
			now, errOut, err := kcp.Kubectl(t, "", s.cluster, append([]string{"get"}, append(strings.Fields(what), "-o", "jsonpath={.metadata.uid} {.metadata.deletionTimestamp}")...)...)
			return framework.Check(err == nil && len(strings.Fields(now)) == 1 && strings.TrimSpace(now) != before, "%s: %s %v %s", what, now, err, errOut)
		})
	}
	s.hub.Enters(t, "dave", s.cluster)
}

// The role of a binding cannot be changed: whoever takes the name of one that the hub
// will make, and holds it, keeps nobody out.
func TestATenantWhoTakesTheNameOfABindingOfTheHubsKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	s := newWorkspaceScene(t)
	for _, person := range []string{"erin", "frank"} {
		name := "kedge:workspace:member:user:" + person
		errOut, err := s.kubectl(t, "bob", byHand("ClusterRoleBinding", name, "bob", exampleFinalizer), "create -f -")
		require.NoError(t, err, errOut)
		if person == "frank" {
			errOut, err = s.kubectl(t, "bob", "", "delete --wait=false clusterrolebinding "+name)
			require.NoError(t, err, errOut)
		}
		s.hub.Do(t, framework.InWorkspace("alice", http.MethodPost, s.org, s.ws, "/members", framework.Adding(person, "member")), http.StatusCreated)
		s.hub.Enters(t, person, s.cluster)
		require.Equal(t, "ClusterRoleBinding/"+name+"=User:"+person+",", s.naming(t, person))
	}
	require.NotContains(t, s.naming(t, "bob"), "kedge:workspace:member")
}

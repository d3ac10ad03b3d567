package rights

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// byHand is a binding that a tenant makes of a person to the admin's role.
func byHand(kind, name, user, metadata string) string {
	return fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":%q,"metadata":{"name":%q%s},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":%q},
		"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":%q}]}`, kind, name, metadata, tenancy.ClusterRoleAdmin, user)
}

// naming are the bindings of a Workspace that name a person, a line each.
func (s workspaceScene) naming(t testing.TB, user string) string {
	t.Helper()
	out, errOut, err := kcp.Kubectl(t, "", s.cluster, "get", "clusterrolebindings,rolebindings", "-A",
		"-o", `jsonpath={range .items[*]}{.kind}/{.metadata.name}={range .subjects[*]}{.kind}:{.name},{end}{"\n"}{end}`)
	require.NoError(t, err, errOut)
	var naming []string
	for line := range strings.Lines(out) {
		if strings.Contains(line, "User:"+user+",") {
			naming = append(naming, strings.TrimSpace(line))
		}
	}
	return strings.Join(naming, "\n")
}

// A demoted admin is left with what a member has, whatever they put on the bindings
// that they made for themselves to keep them.
func TestABindingThatADemotedAdminMadeToLastDoesNot(t *testing.T) {
	t.Parallel()
	s := newWorkspaceScene(t)
	hubs := fmt.Sprintf(`,"labels":{%q:%q}`, v1alpha1.ManagedByLabel, v1alpha1.ManagedByHub)
	const held, inDefault = `,"finalizers":["example.com/held"]`, `,"namespace":"default"`
	for name, metadata := range map[string]string{"held": held, "labelled": hubs, "both": hubs + held} {
		errOut, err := s.kubectl(t, "bob", byHand("ClusterRoleBinding", name, "bob", metadata), "create -f -")
		require.NoError(t, err, errOut)
		errOut, err = s.kubectl(t, "bob", byHand("RoleBinding", name, "bob", inDefault+metadata), "create -f -")
		require.NoError(t, err, errOut)
	}
	errOut, err := s.kubectl(t, "bob", "", `patch clusterrolebinding kedge:workspace:admin:user:bob --type=merge -p {"metadata":{"finalizers":["example.com/held"]}}`)
	require.NoError(t, err, errOut)
	s.hub.Do(t, framework.InWorkspace("alice", http.MethodPatch, s.org, s.ws, "/members/bob", framework.WithRole("member")), http.StatusOK)
	require.Equal(t, "ClusterRoleBinding/kedge:workspace:member:user:bob=User:bob,", s.naming(t, "bob"))
	framework.Eventually(t, framework.Long, func() error {
		return framework.Check(!hasInKCP(t, "bob", s.cluster, "create", "rbac.authorization.k8s.io", "clusterroles"), "bob can still make roles")
	})
	// The positive control: an admin's are left alone while they are one.
	errOut, err = s.kubectl(t, "alice", byHand("ClusterRoleBinding", "alices", "alice", ""), "create -f -")
	require.NoError(t, err, errOut)
	require.Contains(t, s.naming(t, "alice"), "/alices=")
}

// The further role that is taken away ends also where a tenant wants to hold its binding.
func TestABindingOfAFurtherRoleIsNotHeldByAFinalizer(t *testing.T) {
	t.Parallel()
	s := newWorkspaceScene(t)
	errOut, err := s.kubectl(t, "bob", "", "create clusterrole quotas --verb=create --resource=resourcequotas")
	require.NoError(t, err, errOut)
	s.hub.Do(t, framework.InWorkspace("alice", http.MethodPatch, s.org, s.ws, "/members/dave", `{"roles":[{"name":"quotas"}]}`), http.StatusOK)
	bound := tenancy.ExtraBindingName("quotas", "dave")
	require.Contains(t, s.naming(t, "dave"), bound)
	errOut, err = s.kubectl(t, "bob", "", `patch clusterrolebinding `+bound+` --type=merge -p {"metadata":{"finalizers":["example.com/held"]}}`)
	require.NoError(t, err, errOut)
	s.hub.Do(t, framework.InWorkspace("alice", http.MethodPatch, s.org, s.ws, "/members/dave", `{"roles":[]}`), http.StatusOK)
	require.Equal(t, "ClusterRoleBinding/kedge:workspace:member:user:dave=User:dave,", s.naming(t, "dave"))
}

// Elevation is per request: what somebody bound themselves to with it is gone with
// their sudo, and does not wait for them where they were removed.
func TestSudoThatWasMadeStandingEndsWithSudo(t *testing.T) {
	t.Parallel()
	s := newWorkspaceScene(t)
	elevated := "create -f - --as carol --as-group " + tenancy.SudoGroup(s.ws)
	for round, end := range []func(){
		func() {
			s.hub.Do(t, framework.InWorkspace("alice", http.MethodPatch, s.org, s.ws, "/members/carol", map[string]bool{"sudo": false}), http.StatusOK)
		},
		func() {
			s.hub.Do(t, framework.InWorkspace("alice", http.MethodDelete, s.org, s.ws, "/members/carol", nil), http.StatusNoContent)
			s.hub.Do(t, framework.InWorkspace("alice", http.MethodPost, s.org, s.ws, "/members", framework.Adding("carol", "member")), http.StatusCreated)
		},
	} {
		s.hub.Do(t, framework.InWorkspace("alice", http.MethodPatch, s.org, s.ws, "/members/carol", map[string]bool{"sudo": true}), http.StatusOK)
		framework.Eventually(t, framework.Long, func() error {
			errOut, err := s.kubectl(t, "carol", byHand("ClusterRoleBinding", fmt.Sprint("standing-", round), "carol", ""), elevated)
			return framework.Check(err == nil, "%v %s", err, errOut)
		})
		end()
		require.Equal(t, "ClusterRoleBinding/kedge:workspace:member:user:carol=User:carol,", s.naming(t, "carol"))
	}
}

// Whoever removes the hub's own binding of themselves while they are demoted takes away
// what would tell that they were admin.
func TestADemotedAdminWhoRemovesTheirOwnBindingKeepsNothing(t *testing.T) {
	t.Parallel()
	s := newWorkspaceScene(t)
	const bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
	s.assails(t, func(int) call {
		return call{Method: http.MethodDelete, Path: bindings + "/kedge:workspace:admin:user:bob"}
	})
	require.Equal(t, "ClusterRoleBinding/kedge:workspace:member:user:bob=User:bob,", s.naming(t, "bob"))
}

// Whoever makes more and more bindings of themselves while they are demoted is an admin
// in a namespace as long as there is one.
func TestADemotedAdminWhoGoesOnBindingThemselvesKeepsNothing(t *testing.T) {
	t.Parallel()
	s := newWorkspaceScene(t)
	const bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
	s.assails(t, func(i int) call {
		return call{Method: http.MethodPost, Path: bindings, Body: byHand("RoleBinding", fmt.Sprint("more-", i), "bob", "")}
	})
	require.Equal(t, "ClusterRoleBinding/kedge:workspace:member:user:bob=User:bob,", s.naming(t, "bob"))
}

// assails demotes bob, who has bound himself to the admin's role, while he sends the
// requests of next over several connections until he has been refused for a while, and
// waits until he can write bindings no more.
func (s workspaceScene) assails(t *testing.T, next func(i int) call) {
	t.Helper()
	errOut, err := s.kubectl(t, "bob", byHand("ClusterRoleBinding", "mine", "bob", ""), "create -f -")
	require.NoError(t, err, errOut)
	errOut, err = s.kubectl(t, "bob", byHand("RoleBinding", "mine", "bob", `,"namespace":"default"`), "create -f -")
	require.NoError(t, err, errOut)
	began, ended := make(chan struct{}), make(chan error, 4)
	for worker := range cap(ended) {
		go func() {
			refused, failure := 0, error(nil)
			for i := 0; failure == nil && refused < 100; i++ {
				c := next(worker*1_000_000 + i)
				c.As, c.Path = "bob", "/clusters/"+s.cluster+c.Path
				a, err := s.hub.Try(c)
				switch {
				case err != nil:
					failure = err
				case a.Code == http.StatusForbidden:
					refused++
				default:
					refused = 0
				}
				if i == 20 && worker == 0 {
					close(began)
				}
			}
			ended <- failure
		}()
	}
	select {
	case <-began:
	case err := <-ended:
		require.NoError(t, err, "before it began")
	case <-time.After(framework.Long):
		require.Fail(t, "he sends nothing")
	}
	s.hub.Do(t, framework.InWorkspace("alice", http.MethodPatch, s.org, s.ws, "/members/bob", framework.WithRole("member")), http.StatusOK)
	for range cap(ended) {
		select {
		case err := <-ended:
			require.NoError(t, err)
		case <-time.After(framework.Long):
			require.Fail(t, "he is not refused for good", "%s", s.naming(t, "bob"))
		}
	}
	framework.Eventually(t, framework.Long, func() error {
		for _, resource := range []string{"clusterroles", "roles"} {
			if hasInKCP(t, "bob", s.cluster, "create", "rbac.authorization.k8s.io", resource) {
				return fmt.Errorf("bob can still make %s", resource)
			}
		}
		return nil
	})
}

package repair

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// O-11: the hub restores derived objects after manual edits and deletions.
func TestO11_DerivedStateComesBack(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub := framework.StartHub(t, kcp, root)
	org := hub.CreateOrg(t, "alice", "ACME")
	ws := hub.CreateWorkspace(t, "alice", org, "own")
	cluster := ws.Text("clusterID")
	binding := "kedge:workspace:admin:user:alice"
	for _, c := range []struct {
		name    string
		cluster string
		damage  []string
		healed  func() error
	}{
		{"the index", root + ":users", []string{"delete", "usermembershipindexes.tenancy.kedge.faros.sh", "alice"}, func() error {
			return kcp.Prints(t, root+":users", "get", "usermembershipindexes.tenancy.kedge.faros.sh", "alice", "-o", "jsonpath={.spec.entries[*].role}", "admin admin")
		}},
		{"the index's rows", root + ":users", []string{"patch", "usermembershipindexes.tenancy.kedge.faros.sh", "alice", "--type=merge", "-p", `{"spec":{"entries":[]}}`}, func() error {
			return kcp.Prints(t, root+":users", "get", "usermembershipindexes.tenancy.kedge.faros.sh", "alice", "-o", "jsonpath={.spec.entries[*].role}", "admin admin")
		}},
		{"a binding", cluster, []string{"delete", "clusterrolebinding", binding}, func() error {
			return kcp.Prints(t, cluster, "get", "clusterrolebinding", binding, "-o", "jsonpath={.subjects[0].name}", "alice")
		}},
		{"a binding's subject", cluster, []string{"patch", "clusterrolebinding", binding, "--type=merge", "-p", `{"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"mallory"}]}`}, func() error {
			return kcp.Prints(t, cluster, "get", "clusterrolebinding", binding, "-o", "jsonpath={.subjects[*].name}", "alice")
		}},
		{"a binding nobody asked for", cluster, []string{"create", "-f", "-"}, func() error {
			_, errOut, err := kcp.Kubectl(t, "", cluster, "get", "clusterrolebinding", "smuggled")
			if err != nil && strings.Contains(errOut, "NotFound") {
				return nil
			}
			return errors.New("the smuggled binding is still there")
		}},
		{"a role's rules", cluster, []string{"patch", "clusterrole", "kedge:workspace:member", "--type=merge", "-p", `{"rules":[]}`}, func() error {
			return kcp.Prints(t, cluster, "get", "clusterrole", "kedge:workspace:member", "-o", "jsonpath={.rules[0].verbs[0]}", "get")
		}},
		{"a role's label", cluster, []string{"label", "clusterrole", "kedge:workspace:viewer", "tenancy.kedge.faros.sh/managed-by-"}, func() error {
			return kcp.Prints(t, cluster, "get", "clusterrole", "kedge:workspace:viewer", "-o", `jsonpath={.metadata.labels.tenancy\.kedge\.faros\.sh/managed-by}`, "kedge-hub")
		}},
		// The label is damaged instead of the namespace, because kcp itself protects the
		// default namespace from deletion.
		{"the default namespace's label", cluster, []string{"label", "namespace", "default", "tenancy.kedge.faros.sh/managed-by-"}, func() error {
			return kcp.Prints(t, cluster, "get", "namespace", "default", "-o", `jsonpath={.metadata.labels.tenancy\.kedge\.faros\.sh/managed-by}`, "kedge-hub")
		}},
		{"the Workspace's status", root + ":orgs:" + org, []string{"annotate", "workspaces.tenancy.kcp.io", ws.Text("uuid"), "tenancy.kedge.faros.sh/status-"}, func() error {
			a, err := hub.Try(call{As: "alice", Method: http.MethodGet, Path: "/api/orgs/" + org + "/workspaces/" + ws.Text("uuid"), Org: org, Workspace: ws.Text("uuid")})
			if err == nil && a.Text("phase") != "Ready" {
				err = fmt.Errorf("phase %s", a.Text("phase"))
			}
			return err
		}},
		{"the binding of the access export, by the tenant", cluster, []string{"delete", "apibindings.apis.kcp.io", "--all", "--wait=false"}, func() error {
			return kcp.Prints(t, cluster, "get", "apibindings.apis.kcp.io", "access.kedge.faros.sh", "-o", "jsonpath={.status.phase}", "Bound")
		}},
		{"a binding, watched through the restored one", cluster, []string{"delete", "clusterrolebinding", binding}, func() error {
			return kcp.Prints(t, cluster, "get", "clusterrolebinding", binding, "-o", "jsonpath={.subjects[0].name}", "alice")
		}},
	} {
		stdin := ""
		if c.damage[0] == "create" {
			stdin = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"smuggled","labels":{"tenancy.kedge.faros.sh/managed-by":"kedge-hub"}},
				"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"mallory"}],"roleRef":{"kind":"ClusterRole","apiGroup":"rbac.authorization.k8s.io","name":"kedge:workspace:admin"}}`
		}
		_, errOut, err := kcp.Kubectl(t, stdin, c.cluster, c.damage...)
		require.NoError(t, err, "%s: %s", c.name, errOut)
		t.Log(c.name)
		framework.Eventually(t, framework.Long, c.healed)
	}
}

// No controller changes an object with the operation annotation "ignore".
func TestOrganization_withTheIgnoreAnnotationIsLeftAlone(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	orgs := hub.Options.RootWorkspace + ":orgs"
	const kind, operation = "organizations.tenancy.kedge.faros.sh", "tenancy.kedge.faros.sh/operation="
	org := hub.CreateOrg(t, "alice", "ACME")
	_, errOut, err := kcp.Kubectl(t, "", orgs, "annotate", kind, org, operation+"ignore")
	require.NoError(t, err, errOut)
	_, errOut, err = kcp.Kubectl(t, "", orgs, "patch", kind, org, "--type=merge", "-p", `{"spec":{"displayName":"Renamed"}}`)
	require.NoError(t, err, errOut)
	generations := "jsonpath={.metadata.generation} {.status.observedGeneration}"
	require.NoError(t, kcp.Prints(t, orgs, "get", kind, org, "-o", generations, "2 1"))
	_, errOut, err = kcp.Kubectl(t, "", orgs, "annotate", "--overwrite", kind, org, operation+"reconcile")
	require.NoError(t, err, errOut)
	framework.Eventually(t, framework.Long, func() error {
		left := `jsonpath={.status.observedGeneration}{.metadata.annotations.tenancy\.kedge\.faros\.sh/operation}`
		return kcp.Prints(t, orgs, "get", kind, org, "-o", left, "2")
	})
}

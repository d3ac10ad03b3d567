package tenancy

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// defining is a call that defines a resource in a Workspace.
func defining(cluster string, n int) call {
	name := fmt.Sprintf("things%d", n)
	return call{As: "alice", Method: http.MethodPost, Path: "/clusters/" + cluster + "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", Body: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": name + ".example.org"},
		"spec": map[string]any{
			"group": "example.org", "scope": "Cluster", "names": map[string]any{"plural": name, "singular": name, "kind": fmt.Sprintf("Thing%d", n)},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
}

// A tenant at a limit goes on once a platform admin has given their Organization more, and no other has more.
func TestStorage_isGivenToOneOrganization(t *testing.T) {
	t.Parallel()
	hub := framework.StartHub(t, kcp, framework.NewRoot(), framework.WithAdmin, func(o *server.Options) {
		o.Storage.WorkspaceDefinitions, o.Storage.WorkspaceRoles = 2, 5
	})
	framework.SignUp(t, hub, "heidi")
	// answered repeats a call while the Workspace is being measured.
	answered := func(c call) (a framework.Answer) {
		framework.Eventually(t, framework.Long, func() (err error) {
			if a, err = hub.Try(c); err == nil && a.Code == http.StatusServiceUnavailable {
				err = fmt.Errorf("%s", a.Raw)
			}
			return err
		})
		return a
	}
	filled := func(name string) (org, cluster string) {
		org = hub.CreateOrg(t, "alice", name)
		cluster = hub.CreateWorkspace(t, "alice", org, "Shop").Text("clusterID")
		for n := range 2 {
			// A measurement that a create runs beside counts it twice, until the next one.
			framework.Eventually(t, time.Minute, func() error {
				a := answered(defining(cluster, n))
				return framework.Check(a.Code == http.StatusCreated, "%d %s", a.Code, a.Raw)
			})
		}
		a := answered(defining(cluster, 2))
		require.Equal(t, http.StatusInsufficientStorage, a.Code, "%s", a.Raw)
		require.Contains(t, framework.StatusOf(t, a).Message, "this workspace stores 2 of 2 CustomResourceDefinitions")
		return org, cluster
	}
	org, cluster := filled("ACME")
	_, other := filled("Other")
	raise := call{As: "alice", Method: http.MethodPatch, Path: "/api/admin/orgs/" + org, Body: `{"storage":{"workspaceCRDs":3}}`}
	hub.Do(t, raise, http.StatusForbidden)
	raise.As = "heidi"
	limits, ok := hub.Do(t, raise, http.StatusOK).JSON["storage"].(map[string]any)
	require.True(t, ok)
	require.InDelta(t, 3, limits["workspaceCRDs"], 0)
	framework.Eventually(t, time.Minute, func() error {
		a := answered(defining(cluster, 2))
		return framework.Check(a.Code == http.StatusCreated, "%d %s", a.Code, a.Raw)
	})
	require.Equal(t, http.StatusInsufficientStorage, answered(defining(cluster, 3)).Code)
	require.Equal(t, http.StatusInsufficientStorage, answered(defining(other, 2)).Code)
	// Roles, ClusterRoles and Namespaces have one limit together.
	made := 0
	var a framework.Answer
	for ; made <= 5 && a.Code != http.StatusInsufficientStorage; made++ {
		a = answered(call{As: "alice", Method: http.MethodPost, Path: "/clusters/" + cluster + "/api/v1/namespaces", Body: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": fmt.Sprint("space", made)},
		}})
	}
	require.Equal(t, http.StatusInsufficientStorage, a.Code, "%d namespaces: %s", made, a.Raw)
	require.Greater(t, made, 1, "the control: %s", a.Raw)
	a = answered(call{As: "alice", Method: http.MethodPost, Path: "/clusters/" + cluster + "/apis/rbac.authorization.k8s.io/v1/clusterroles", Body: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "mine"},
	}})
	require.Equal(t, http.StatusInsufficientStorage, a.Code, "%s", a.Raw)
	require.Contains(t, framework.StatusOf(t, a).Message, "Roles, ClusterRoles and Namespaces")
}

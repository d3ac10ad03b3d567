package lifecycle

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// fill takes the room for further annotations of the LogicalCluster of a Workspace. kcp takes it
// with a lock for each CustomResourceDefinition, some 900 of them.
func (p platform) fill(t testing.TB, cluster string) {
	t.Helper()
	const limit, key = 256 << 10, "example.org/filler"
	client := p.LogicalClusters(p.ClusterURL(cluster))
	annotate := func(key string, length int) error {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, strings.Repeat("a", length))
		_, err := client.Patch(t.Context(), kcpcorev1alpha1.LogicalClusterName, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
	lc, err := client.Get(t.Context(), kcpcorev1alpha1.LogicalClusterName, metav1.GetOptions{})
	require.NoError(t, err)
	used := len(key)
	for name, value := range lc.Annotations {
		used += len(name) + len(value)
	}
	require.NoError(t, annotate(key, limit-used))
	require.True(t, apierrors.IsInvalid(annotate("a", 0)), "there is no room")
}

// O-13: the definitions of a Workspace can leave no room for the annotation by which kcp ends
// watches. The deletion refuses everybody all the same, says what is missing, and goes on.
func TestO13_WhatHasNoRoomForTheMarkOfKcpIsDeletedAllTheSame(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	p := newPlatform(t, hub.Options.RootWorkspace)
	framework.SignUp(t, hub, "alice", "bob")
	org := hub.CreateOrg(t, "alice", "ACME")
	made := hub.CreateWorkspace(t, "alice", org, "dev")
	ws, cluster := made.Text("uuid"), made.Text("clusterID")
	hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	rights := p.RolesIn(t, cluster, "bob")
	p.fill(t, cluster)
	for name, c := range map[string]struct {
		call     func(method, below string) call
		orgLives bool
	}{
		"Workspace": {func(method, below string) call { return framework.InWorkspace("alice", method, org, ws, below, nil) }, true},
		"Org":       {func(method, below string) call { return framework.InOrg("alice", method, org, below, nil) }, false},
	} {
		framework.Eventually(t, framework.Long, func() error { return shownAs(hub, "bob", org, ws, cluster, true, true) })
		watch := watchAs(t, hub, "bob", cluster)
		status, message := activity(t, hub.Do(t, c.call(http.MethodDelete, ""), http.StatusOK))
		require.Equal(t, "False", status, name)
		require.Contains(t, message, "watches that clients hold at kcp itself stay open", name)
		require.NoError(t, shownAs(hub, "bob", org, ws, cluster, c.orgLives, false), name)
		<-watch
		kcp.Refuses(t, "bob", cluster)

		status, _ = activity(t, hub.Do(t, c.call(http.MethodPost, "/undelete"), http.StatusOK))
		require.Equal(t, "True", status, name)
		framework.Eventually(t, framework.Long, func() error { return shownAs(hub, "bob", org, ws, cluster, true, true) })
		require.Equal(t, rights, p.RolesIn(t, cluster, "bob"), name)
	}
	hub.Do(t, framework.InWorkspace("alice", http.MethodDelete, org, ws, "", nil), http.StatusOK)
	p.age(t, "", org, ws, over())
	gone(t, p.Workspaces(p.OrgPath(org)), ws)
	p.SettlesIn(t, org, "alice", "bob")
}

// defineMost makes as many CustomResourceDefinitions as a Workspace can have by default, with the longest
// names that Kubernetes takes.
func defineMost(t testing.TB, cluster string) {
	t.Helper()
	const longest, label = 253, 63
	items := make([]any, server.NewOptions().Storage.WorkspaceDefinitions)
	for n := range items {
		plural := fmt.Sprintf("things%d%s", n, strings.Repeat("s", label))[:label]
		group := strings.Repeat(strings.Repeat("g", label-1)+".", 4)[:longest-label-1-len(".example")] + ".example"
		items[n] = map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + "." + group},
			"spec": map[string]any{
				"group": group, "scope": "Cluster", "names": map[string]any{"plural": plural, "singular": plural, "kind": fmt.Sprint("Thing", n)},
				"versions": []any{map[string]any{
					"name": "v1", "served": true, "storage": true,
					"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
				}},
			},
		}
	}
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	require.NoError(t, err)
	out, errOut, err := kcp.Kubectl(t, string(list), cluster, "create", "-f", "-")
	require.NoError(t, err, errOut)
	require.Equal(t, len(items), strings.Count(out, " created"))
}

// O-13: a Workspace with as many definitions as the limit lets in has room for the mark by which kcp ends watches.
func TestO13_TheFullestWorkspaceIsDeactivated(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	org := hub.CreateOrg(t, "alice", "ACME")
	made := hub.CreateWorkspace(t, "alice", org, "dev")
	ws, cluster := made.Text("uuid"), made.Text("clusterID")
	defineMost(t, cluster)
	watch := watchAs(t, hub, "alice", cluster)
	status, message := activity(t, hub.Do(t, framework.InWorkspace("alice", http.MethodDelete, org, ws, "", nil), http.StatusOK))
	require.Equal(t, "False", status)
	require.NotContains(t, message, "stay open")
	<-watch
	kcp.Refuses(t, "alice", cluster)
	status, _ = activity(t, hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/undelete", nil), http.StatusOK))
	require.Equal(t, "True", status)
	framework.Eventually(t, framework.Long, func() error { return shownAs(hub, "alice", org, ws, cluster, true, true) })
}

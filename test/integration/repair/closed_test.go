package repair

import (
	"fmt"
	"net/http"
	"testing"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/test/framework"
)

// O-11, O-13: if an operator removes the inactive annotation from the logical cluster of
// a soft-deleted Workspace or Org, the hub sets it again.
func TestO11_WhatShutsTheDeletedComesBack(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	p, above := newPlatform(t, hub.Options.RootWorkspace), kcp.ShardAdmin(t)
	org := hub.CreateOrg(t, "dave", "ACME")
	made := hub.CreateWorkspace(t, "dave", org, "dev")
	ws, cluster := made.Text("uuid"), made.Text("clusterID")
	orgs, err := p.Workspaces(p.OrgsPath()).Get(t.Context(), org, metav1.GetOptions{})
	require.NoError(t, err)
	mark := kcpcorev1alpha1.LogicalClusterInactiveAnnotationKey
	open := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, mark)
	for name, c := range map[string]struct {
		remove call
		shut   []string
	}{
		"the Workspace": {framework.InWorkspace("dave", http.MethodDelete, org, ws, "", nil), []string{cluster}},
		"the Org":       {framework.InOrg("dave", http.MethodDelete, org, "", nil), []string{cluster, orgs.Spec.Cluster}},
	} {
		hub.Do(t, c.remove, http.StatusOK)
		for _, at := range c.shut {
			frozen := above.LogicalClusters(above.ClusterURL(at))
			before, err := frozen.Get(t.Context(), "cluster", metav1.GetOptions{})
			require.NoError(t, err)
			require.NotEmpty(t, before.Annotations[mark], name)
			// The phase stays Unavailable: one logical cluster that is Ready and inactive
			// makes kcp end all wildcard requests.
			opened, err := frozen.Patch(t.Context(), "cluster", types.MergePatchType, open, metav1.PatchOptions{})
			require.NoError(t, err)
			require.Empty(t, opened.Annotations[mark])
			framework.Eventually(t, framework.Long, func() error {
				lc, err := frozen.Get(t.Context(), "cluster", metav1.GetOptions{})
				if err != nil {
					return err
				}
				return framework.Check(lc.Annotations[mark] != "", "%s: %s is open", name, at)
			})
			kcp.Refuses(t, "dave", at)
		}
		undelete := c.remove
		undelete.Method, undelete.Path = http.MethodPost, c.remove.Path+"/undelete"
		hub.Do(t, undelete, http.StatusOK)
		framework.Eventually(t, framework.Long, func() error {
			return framework.Equal(http.StatusOK, kcp.Straight(t, "dave", cluster, "/api/v1/namespaces"))
		})
	}
	p.SettlesIn(t, org, "dave")
}

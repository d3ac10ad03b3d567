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

// O-11: the hub activates a logical cluster that is inactive although its Workspace or
// Org is not deleted. A leader leaves this state if it stops while it deactivates an
// object that is undeleted at the same time.
func TestO11_WhatIsShutAndNotDeletedIsOpened(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	p, above := newPlatform(t, hub.Options.RootWorkspace), kcp.ShardAdmin(t)
	org := hub.CreateOrg(t, "erin", "ACME")
	cluster := hub.CreateWorkspace(t, "erin", org, "dev").Text("clusterID")
	own, err := p.Workspaces(p.OrgsPath()).Get(t.Context(), org, metav1.GetOptions{})
	require.NoError(t, err)
	hub.Enters(t, "erin", cluster)
	for name, at := range map[string]string{"the Workspace": cluster, "the Org": own.Spec.Cluster} {
		held := above.LogicalClusters(above.ClusterURL(at))
		shut := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, kcpcorev1alpha1.LogicalClusterInactiveAnnotationKey)
		// The phase is set first: one logical cluster that is Ready and inactive makes
		// kcp end all wildcard requests.
		_, err := held.Patch(t.Context(), "cluster", types.MergePatchType, fmt.Appendf(nil, `{"status":{"phase":%q}}`, kcpcorev1alpha1.LogicalClusterPhaseUnavailable), metav1.PatchOptions{}, "status")
		require.NoError(t, err, name)
		_, err = held.Patch(t.Context(), "cluster", types.MergePatchType, shut, metav1.PatchOptions{})
		require.NoError(t, err, name)
		framework.Eventually(t, framework.Long, func() error {
			lc, err := held.Get(t.Context(), "cluster", metav1.GetOptions{})
			if err != nil {
				return err
			}
			return framework.Check(lc.Annotations[kcpcorev1alpha1.LogicalClusterInactiveAnnotationKey] == "" && lc.Status.Phase == kcpcorev1alpha1.LogicalClusterPhaseReady,
				"%s is %s, and %q", name, lc.Status.Phase, lc.Annotations[kcpcorev1alpha1.LogicalClusterInactiveAnnotationKey])
		})
	}
	framework.Eventually(t, framework.Long, func() error {
		return framework.Equal(http.StatusOK, kcp.Straight(t, "erin", cluster, "/api/v1/namespaces"))
	})
	hub.CreateWorkspace(t, "erin", org, "another")
	p.SettlesIn(t, org, "erin")
}

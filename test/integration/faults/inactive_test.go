package faults

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/test/framework"
)

// kcp's admin marks a logical cluster of the tree inactive, and kcp ends all wildcard requests. The
// hub activates it again, whether it is a Workspace or a workspace of the hub; what is soft-deleted
// stays deactivated (O-11).
//
// The test affects the kcp of the group, so it does not run in parallel with others.
func TestInactiveCluster_isActivatedAgain(t *testing.T) {
	root := framework.NewRoot()
	s := newScene(t, framework.StartHub(t, kcp, root))
	p, above := kcp.Platform(t, root), kcp.ShardAdmin(t)
	own, err := p.Workspaces(p.OrgsPath()).Get(t.Context(), s.org, metav1.GetOptions{})
	require.NoError(t, err)
	deleted := s.hub.CreateWorkspace(t, "alice", s.org, "deleted")
	s.hub.Do(t, framework.InWorkspace("alice", http.MethodDelete, s.org, deleted.Text("uuid"), "", nil), http.StatusOK)

	for _, c := range []struct{ name, at, mark string }{
		{"a Workspace", s.cluster, kcpcorev1alpha1.LogicalClusterInactiveAnnotationKey},
		{"an Org, in the old way", own.Spec.Cluster, "internal.kcp.io/inactive"},
		{"that of the Orgs", p.OrgsPath(), kcpcorev1alpha1.LogicalClusterInactiveAnnotationKey},
	} {
		held, began := above.LogicalClusters(above.ClusterURL(c.at)), time.Now()
		marked, err := held.Patch(t.Context(), "cluster", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, c.mark), metav1.PatchOptions{})
		require.NoError(t, err, c.name)
		require.Equal(t, kcpcorev1alpha1.LogicalClusterPhaseReady, marked.Status.Phase, "this is what the test is about")
		framework.Eventually(t, framework.Long, func() error {
			lc, err := held.Get(t.Context(), "cluster", metav1.GetOptions{})
			if err != nil {
				return err
			}
			return framework.Check(lc.Annotations[c.mark] == "" && lc.Status.Phase == kcpcorev1alpha1.LogicalClusterPhaseReady, "%s is %s, and %q", c.name, lc.Status.Phase, lc.Annotations[c.mark])
		})
		s.recovered(t)
		t.Logf("%s: all was well %s after", c.name, time.Since(began).Round(time.Millisecond))
		kcp.Refuses(t, "alice", deleted.Text("clusterID"))
	}
	s.hub.Do(t, framework.InWorkspace("alice", http.MethodPost, s.org, deleted.Text("uuid"), "/undelete", nil), http.StatusOK)
	s.hub.Enters(t, "alice", deleted.Text("clusterID"))
	p.Settles(t, false)
}

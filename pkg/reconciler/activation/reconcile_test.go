package activation_test

import (
	"context"
	"testing"

	"github.com/kcp-dev/sdk/apis/core"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/activation"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

func TestReconcile_reactivatesWhatIsInactiveAndOurs(t *testing.T) {
	t.Parallel()
	inactive := func(phase kcpcorev1alpha1.LogicalClusterPhaseType, marked bool) *kcpcorev1alpha1.LogicalCluster {
		lc := &kcpcorev1alpha1.LogicalCluster{ObjectMeta: metav1.ObjectMeta{Name: kcpcorev1alpha1.LogicalClusterName, Annotations: map[string]string{}}}
		lc.Status.Phase = phase
		if marked {
			lc.Annotations[kcpcorev1alpha1.LogicalClusterInactiveAnnotationKey] = "true"
		}
		return lc
	}
	for _, test := range []struct {
		name  string
		lc    *kcpcorev1alpha1.LogicalCluster
		ours  bool
		calls int
	}{
		{name: "inactive", lc: inactive("Inactive", true), ours: true, calls: 1},
		{name: "of another tree", lc: inactive("Inactive", true)},
		{name: "deactivated by the hub", lc: inactive("Unavailable", true), ours: true},
		{name: "followed by kcp in a moment", lc: inactive("Inactive", false), ours: true},
		{name: "gone", ours: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			k, calls := kcptest.New(t), 0
			if test.lc != nil {
				path := "root:other:orgs:o"
				if test.ours {
					path = k.Tree.Org("o")
				}
				test.lc.Annotations[core.LogicalClusterPathAnnotationKey] = path
				k.Put("c", test.lc)
			}
			cached := kcpfake.Cache[*kcpcorev1alpha1.LogicalCluster]{Server: k.Server}
			reconcile := activation.New(cached, k.Tree, func(_ context.Context, lc *kcpcorev1alpha1.LogicalCluster) error {
				calls++
				require.Equal(t, test.lc.Status, lc.Status)
				return nil
			})
			_, err := reconcile(t.Context(), controller.Key{Cluster: "c", Name: "cluster"})
			require.NoError(t, err)
			require.Equal(t, test.calls, calls)
		})
	}
}

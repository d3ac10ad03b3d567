package activation_test

import (
	"context"
	"testing"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/activation"
)

func TestReconcile_reactivatesWhatIsInactiveAndOurs(t *testing.T) {
	t.Parallel()
	inactive := func(phase kcpcorev1alpha1.LogicalClusterPhaseType, marked bool) *kcpcorev1alpha1.LogicalCluster {
		lc := &kcpcorev1alpha1.LogicalCluster{}
		lc.Status.Phase = phase
		if marked {
			lc.Annotations = map[string]string{kcpcorev1alpha1.LogicalClusterInactiveAnnotationKey: "true"}
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
			calls := 0
			reconcile := activation.New(activation.Config{
				Get:  func(string, string) (*kcpcorev1alpha1.LogicalCluster, bool) { return test.lc, test.lc != nil },
				Ours: func(*kcpcorev1alpha1.LogicalCluster) bool { return test.ours },
				Reactivate: func(_ context.Context, lc *kcpcorev1alpha1.LogicalCluster) error {
					calls++
					require.Same(t, test.lc, lc)
					return nil
				},
			})
			_, err := reconcile(t.Context(), controller.Key{Cluster: "c", Name: "cluster"})
			require.NoError(t, err)
			require.Equal(t, test.calls, calls)
		})
	}
}

package activation

import (
	"context"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/log"
)

// Config holds what the reconciler needs.
type Config struct {
	// Get reads from the cache.
	Get func(cluster, name string) (*kcpcorev1alpha1.LogicalCluster, bool)
	// Ours reports whether a logical cluster is in the hub's tree.
	Ours func(*kcpcorev1alpha1.LogicalCluster) bool
	// Reactivate removes the mark from just this version of a logical cluster.
	Reactivate func(context.Context, *kcpcorev1alpha1.LogicalCluster) error
}

// New returns the reconciler.
func New(c Config) controller.Func {
	return func(ctx context.Context, key controller.Key) (controller.Result, error) {
		lc, ok := c.Get(key.Cluster, key.Name)
		if !ok || lc.Status.Phase != kcpcorev1alpha1.LogicalClusterPhaseInactive || !kcpcorev1alpha1.IsLogicalClusterInactive(lc.Annotations) || !c.Ours(lc) {
			return controller.Result{}, nil
		}
		err := c.Reactivate(ctx, lc)
		if err == nil {
			log.From(ctx).Warn("activated a logical cluster: kcp refuses all wildcard requests while one is in phase Inactive", zap.String("cluster", key.Cluster))
		}
		return controller.Result{}, err
	}
}

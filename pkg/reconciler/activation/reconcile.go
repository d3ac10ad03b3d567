package activation

import (
	"context"

	"github.com/kcp-dev/sdk/apis/core"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// New returns the reconciler of the logical clusters in the hub's tree. reactivate removes the mark from
// just this version of one.
func New(cached objects.Cache[*kcpcorev1alpha1.LogicalCluster], tree tenancy.Tree, reactivate func(context.Context, *kcpcorev1alpha1.LogicalCluster) error) controller.Func {
	return func(ctx context.Context, key controller.Key) (controller.Result, error) {
		lc, ok := cached.Get(key.Cluster, key.Name)
		if !ok || lc.Status.Phase != kcpcorev1alpha1.LogicalClusterPhaseInactive || !kcpcorev1alpha1.IsLogicalClusterInactive(lc.Annotations) ||
			!tree.Holds(lc.Annotations[core.LogicalClusterPathAnnotationKey]) {
			return controller.Result{}, nil
		}
		err := reactivate(ctx, lc)
		if err == nil {
			log.From(ctx).Warn("activated a logical cluster: kcp refuses all wildcard requests while one is in phase Inactive", zap.String("cluster", key.Cluster))
		}
		return controller.Result{}, err
	}
}

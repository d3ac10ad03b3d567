package activation

import (
	"github.com/kcp-dev/sdk/apis/core"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// NewController returns the controller of inactive logical clusters. The Freezer of d
// must not need leadership.
func NewController(d reconciler.Deps) *controller.Controller {
	inactive := d.Views.Inactive
	c := d.Controller(controller.Options{Name: "activation", All: func() (keys []controller.Key) {
		for lc := range inactive.All() {
			keys = append(keys, keyOf(lc))
		}
		return keys
	}}, New(Config{
		Get: inactive.Get,
		Ours: func(lc *kcpcorev1alpha1.LogicalCluster) bool {
			return d.Settings.Tree.Holds(lc.Annotations[core.LogicalClusterPathAnnotationKey])
		},
		Reactivate: objects.RetryConflicts(d.Freezer.Reactivate),
	}))
	d.Views.Inactive.OnChange(func(lc views.Change[*kcpcorev1alpha1.LogicalCluster]) {
		if lc.New != nil {
			c.Enqueue(keyOf(lc.New))
		}
	})
	return c
}

func keyOf(lc *kcpcorev1alpha1.LogicalCluster) controller.Key {
	return controller.Key{Cluster: kcp.ClusterOf(lc), Name: lc.Name}
}

package activation

import (
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
	}}, New(inactive, d.Settings.Tree, objects.Clusters{Freezer: d.Freezer}.Reactivate))
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

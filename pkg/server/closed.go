package server

import (
	"context"
	"fmt"

	"github.com/kcp-dev/sdk/apis/core"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// shut tells whether a logical cluster is closed.
func (c *controllers) shut(cluster string) bool {
	lc, ok := c.closed.Get(cluster, kcpcorev1alpha1.LogicalClusterName)
	return ok && kcpcorev1alpha1.IsLogicalClusterInactive(lc.Annotations)
}

// onClosed brings back what is soft-deleted where somebody opened it in kcp, and what
// lives where it was closed, as by a leader that was stopped in the middle of that.
func (c *controllers) onClosed(old, new *kcpcorev1alpha1.LogicalCluster) {
	cluster := kcp.ClusterOf(current(old, new))
	at := c.views.Cluster(cluster)
	if at.Kind == tenancy.ClusterWorkspace {
		if key, ok := c.derivedIn(cluster); ok {
			c.workspace.Enqueue(key)
		}
	}
	// An Org keeps all closed that is in it.
	if at.OrgUUID != "" {
		c.organization.Enqueue(controller.Key{Cluster: c.clusters.Orgs, Name: at.OrgUUID})
	}
}

// newActivation makes active again what kcp's admin has made inactive in the tree, be
// it to live or to be frozen: with it kcp has ended the wildcard requests of the whole
// shard, so that nothing else of the hub works. For the same reason it does not wait
// for memory, or for a replica to lead; what it writes holds for what it has seen only.
func (c *controllers) newActivation(closer *kcp.Clients) *controller.Controller {
	activation := controller.New(controller.Options{Name: "activation", All: c.allClosed}, c.metrics, func(ctx context.Context, key controller.Key) (controller.Result, error) {
		lc, ok := c.closed.Get(key.Cluster, key.Name)
		if !ok || lc.Status.Phase != kcpcorev1alpha1.LogicalClusterPhaseInactive || !kcpcorev1alpha1.IsLogicalClusterInactive(lc.Annotations) ||
			!c.config.Tree.Holds(lc.Annotations[core.LogicalClusterPathAnnotationKey]) {
			return controller.Result{}, nil
		}
		fence := fmt.Sprintf(`"uid":%q,"resourceVersion":%q,`, lc.UID, lc.ResourceVersion)
		_, err := closer.LogicalClusters(closer.ClusterURL(key.Cluster)).Patch(ctx, key.Name, types.MergePatchType, unmarked(fence), metav1.PatchOptions{FieldManager: kcp.FieldManager})
		if err == nil {
			log.From(ctx).Warn("made a logical cluster active again: kcp refuses all wildcard requests while one that it calls Inactive is there", zap.String("cluster", key.Cluster))
		}
		return controller.Result{}, again(unlessGone(err))
	})
	c.closed.OnChange(func(_, new *kcpcorev1alpha1.LogicalCluster) {
		if new != nil {
			activation.Enqueue(controller.Key{Cluster: kcp.ClusterOf(new), Name: new.Name})
		}
	})
	return activation
}

// inactiveOld is what kcp has called it before, and still goes by.
const inactiveOld = "internal.kcp.io/inactive"

// unmarked is a patch that takes off a logical cluster what makes it inactive, in
// either of the names that kcp goes by. fence is the metadata that it asks for, each
// with a comma behind it.
func unmarked(fence string) []byte {
	return fmt.Appendf(nil, `{"metadata":{%s"annotations":{%q:null,%q:null}}}`, fence,
		kcpcorev1alpha1.LogicalClusterInactiveAnnotationKey, inactiveOld)
}

func (c *controllers) allClosed() (keys []controller.Key) {
	for lc := range c.closed.All() {
		keys = append(keys, controller.Key{Cluster: kcp.ClusterOf(lc), Name: lc.Name})
	}
	return keys
}

package server

import (
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// closedClusters are the logical clusters that the hub has closed, which nobody but
// whoever may close them sees.
func closedClusters(closer *kcp.Clients) *kcp.Informer[*kcpcorev1alpha1.LogicalCluster] {
	return kcp.NewInformer(closer, kcpcorev1alpha1.SchemeGroupVersion.WithResource("logicalclusters"),
		kcptenancyv1alpha1.WorkspacePhaseLabel+"="+string(phaseClosed),
		func() *kcpcorev1alpha1.LogicalCluster { return &kcpcorev1alpha1.LogicalCluster{} },
		func() runtime.Object { return &kcpcorev1alpha1.LogicalClusterList{} })
}

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

package tenancy

import (
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	"github.com/kcp-dev/sdk/apis/core"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
)

// HoldsTenant reports whether a logical cluster is below the workspace of the Organizations.
func (t Tree) HoldsTenant(lc *kcpcorev1alpha1.LogicalCluster) bool {
	return lc.Spec.Owner != nil && strings.HasPrefix(lc.Annotations[core.LogicalClusterPathAnnotationKey], t.Orgs()+":")
}

// HasWorkspace reports whether a Workspace, by the logical cluster and the name of its owner, is that of a logical cluster.
// kcp makes the logical cluster first, and then names it in the Workspace.
func HasWorkspace(lc *kcpcorev1alpha1.LogicalCluster, ws *kcptenancyv1alpha1.Workspace) bool {
	return ws.Spec.Cluster == "" || ws.Spec.Cluster == string(logicalcluster.From(lc))
}

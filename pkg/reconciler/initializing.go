package reconciler

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
)

// WaitsForHub reports whether the logical cluster belongs to an Organization and the
// hub's initializer is the only one left.
func (d Deps) WaitsForHub(lc *kcpcorev1alpha1.LogicalCluster) bool {
	return lc.Spec.Owner != nil && lc.Spec.Owner.Cluster == d.Clusters.Orgs &&
		slices.Equal(lc.Status.Initializers, []kcpcorev1alpha1.LogicalClusterInitializer{kcpcorev1alpha1.LogicalClusterInitializer(d.Clusters.Initializer)})
}

// InitializingCluster finds the logical cluster of an Organization that waits for the
// hub. Only a few are initializing at any time.
func (d Deps) InitializingCluster(org string) (cluster string, ok bool) {
	for lc := range d.Views.Initializing.All() {
		if d.WaitsForHub(lc) && lc.Spec.Owner.Name == org {
			return kcp.ClusterOf(lc), true
		}
	}
	return "", false
}

// Initialize removes the hub's initializer from an Organization's logical cluster, on
// the shard that has it.
func (d Deps) Initialize(ctx context.Context, org, cluster string) error {
	const field = "/status/initializers"
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": field, "value": []string{d.Clusters.Initializer}},
		{"op": "replace", "path": field, "value": []string{}},
	})
	if err != nil {
		return err
	}
	var last error
	for _, url := range d.Initializing() {
		_, err := d.Clients.LogicalClusters(url+"/clusters/"+cluster).Patch(ctx, kcpcorev1alpha1.LogicalClusterName, types.JSONPatchType, patch, metav1.PatchOptions{}, "status")
		switch {
		case err == nil:
			return d.touch(ctx, org)
		case apierrors.IsNotFound(err), apierrors.IsForbidden(err), apierrors.IsInvalid(err):
			// Another shard has it, or it is initialized already.
			last = cmp.Or(last, fmt.Errorf("%w: %w", controller.ErrRetry, err))
		default:
			// This shard may be down and another one have it.
			last = err
		}
	}
	return last
}

// touch changes an Organization's kcp Workspace so that kcp looks at its logical cluster
// at once. By itself kcp (0.32) polls with a delay of a fifth of the Workspace's age.
func (d Deps) touch(ctx context.Context, org string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.InitializedAnnotation: "true"}}})
	if err != nil {
		return err
	}
	_, err = d.Clients.Workspaces(d.Clusters.Orgs).Patch(ctx, org, types.MergePatchType, patch, metav1.PatchOptions{})
	return objects.Retryable(err)
}

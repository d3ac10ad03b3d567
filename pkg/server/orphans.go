package server

import (
	"context"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/restore"
	"github.com/faroshq/kedge-hub/pkg/verify"
)

// closeOrphans deactivates what a shard has and the shard of its Workspace has not, because their snapshots are of different
// times. kcp has one snapshot where it has one shard. It is repeated until nothing is left, and for as long as a Step at most.
func (a *assembly) closeOrphans(ctx context.Context) (found []restore.Orphan, err error) {
	if a.hub.config.Embedded {
		return nil, nil
	}
	o := restore.Orphans{
		Tree: a.hub.config.Tree, Cached: a.views.ChildWorkspaces.Get, Deactivate: a.freezer.Deactivate,
		List: func(ctx context.Context) ([]*kcpcorev1alpha1.LogicalCluster, error) {
			shards, err := a.clients.ListShards(ctx)
			if err != nil || len(shards.Items) < 2 {
				return nil, err
			}
			return verify.LogicalClusters(ctx, a.clients, a.shardAdmin, a.sharded)
		},
		Read: func(ctx context.Context, cluster, name string) (*kcptenancyv1alpha1.Workspace, error) {
			return a.clients.Workspaces(cluster).Get(ctx, name, metav1.GetOptions{})
		},
	}
	began := a.clock.Now()
	return found, retrying(ctx, "deactivate what has no Workspace", func() (err error) {
		found, err = o.Close(ctx)
		if a.clock.Since(began) >= replayPatience {
			// The report says what is open.
			return nil
		}
		return err
	})
}

package server

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/bootstrap"
	"github.com/faroshq/kedge-hub/pkg/leader"
)

// newLeader returns this replica's part in the election. A kcp in this process has
// no other hub; of any other the tree's root holds the Lease.
func newLeader(c Config, clients *kcp.Clients, clusters bootstrap.Clusters, registry prometheus.Registerer) (*leader.Leader, error) {
	if c.Embedded || !c.LeaderElect {
		return leader.Alone(registry)
	}
	return leader.New(leader.Config{Lock: leader.NewLease(clients, clusters.Root), Metrics: registry})
}

// lead runs the controllers while this replica leads. Each run begins with every
// key: what happened under another leader is not in the queues.
func lead(ctx context.Context, l *leader.Leader, p presence, controllers []*controller.Controller) {
	l.Run(ctx, func(ctx context.Context) {
		var running sync.WaitGroup
		for _, c := range controllers {
			running.Go(func() { whilePresent(ctx, p, c.Run) })
		}
		running.Wait()
	})
}

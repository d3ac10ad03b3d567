package server

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/bootstrap"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
	"github.com/faroshq/kedge-hub/pkg/leader"
)

// newLeader returns the election of this replica. With an embedded kcp there is no other replica;
// otherwise the Lease is in the root workspace of the tree.
func newLeader(c Config, clients *kcp.Clients, clusters bootstrap.Clusters, registry prometheus.Registerer) (*leader.Leader, error) {
	if c.Embedded || !c.LeaderElect {
		return leader.Alone(registry)
	}
	return leader.New(leader.Config{Lock: leader.NewLease(clients, clusters.Root), Metrics: registry})
}

// lead runs the controllers while this replica is the leader. Each run begins with all keys,
// because the queues do not have the events of another leader's term.
func lead(ctx context.Context, l *leader.Leader, there transport.Healths, controllers []*controller.Controller) {
	l.Run(ctx, func(ctx context.Context) {
		var running sync.WaitGroup
		for _, c := range controllers {
			running.Go(func() { there.RunWhileAvailable(ctx, c.Run) })
		}
		running.Wait()
	})
}

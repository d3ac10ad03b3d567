package store

import (
	"context"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
)

// GetBot reads a Bot of an Organization from kcp. It returns nil if there is none.
func (s *Store) GetBot(ctx context.Context, orgCluster, name string) (*v1alpha1.Bot, error) {
	return find(ctx, s.clients.Bots(orgCluster), name, "bot")
}

// DeleteBot deletes the Bot with the UID of held. The error is NotFound if it does not exist any more.
func (s *Store) DeleteBot(ctx context.Context, held *v1alpha1.Bot, match Match) error {
	return remove(ctx, s.clients.Bots(kcp.ClusterOf(held)), held, match, "bot")
}

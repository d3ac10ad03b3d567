package store

import (
	"context"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// ListInvitations lists all Invitations of an Organization in kcp.
func (s *Store) ListInvitations(ctx context.Context, orgCluster string) ([]v1alpha1.Invitation, error) {
	all, err := list[v1alpha1.InvitationList](ctx, s.clients.Invitations(orgCluster), "invitations", "invitations")
	return all.Items, err
}

// GetInvitation reads an Invitation of an Organization from kcp. It returns nil if there is none.
func (s *Store) GetInvitation(ctx context.Context, orgCluster, name string) (*v1alpha1.Invitation, error) {
	return find(ctx, s.clients.Invitations(orgCluster), name, "invitation")
}

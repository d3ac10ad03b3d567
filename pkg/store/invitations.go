package store

import (
	"context"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// ListInvitations lists all Invitations of an Organization in kcp.
func (s *Store) ListInvitations(ctx context.Context, orgCluster string) ([]v1alpha1.Invitation, error) {
	var list v1alpha1.InvitationList
	err := retry(ctx, func(ctx context.Context) error {
		list = v1alpha1.InvitationList{}
		return s.clients.Invitations(orgCluster).GetClient().Get().Resource("invitations").Do(ctx).Into(&list)
	})
	return list.Items, convert(err, "invitations")
}

// GetInvitation reads an Invitation of an Organization from kcp. It returns nil if there is none.
func (s *Store) GetInvitation(ctx context.Context, orgCluster, name string) (*v1alpha1.Invitation, error) {
	i, err := read(ctx, s.clients.Invitations(orgCluster), name, "invitation")
	if errs.Is(err, errs.NotFound) {
		return nil, nil
	}
	return i, err
}

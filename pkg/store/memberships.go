package store

import (
	"context"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// ListMemberships lists all Memberships of an Organization in kcp, for rules that must not
// be evaluated on a cache.
func (s *Store) ListMemberships(ctx context.Context, orgCluster string) ([]v1alpha1.Membership, error) {
	all, err := list[v1alpha1.MembershipList](ctx, s.clients.Memberships(orgCluster), "memberships", "members")
	return all.Items, err
}

// GetMembership reads a Membership of an Organization from kcp. It returns nil if there is none.
func (s *Store) GetMembership(ctx context.Context, orgCluster, name string) (*v1alpha1.Membership, error) {
	return find(ctx, s.clients.Memberships(orgCluster), name, "membership")
}

// ChangeMembership is ChangeUser for a Membership of an Organization whose controller does not change it.
func (s *Store) ChangeMembership(ctx context.Context, orgCluster string, held *v1alpha1.Membership, match Match,
	edit Edit[*v1alpha1.Membership],
) (*v1alpha1.Membership, error) {
	return change(ctx, s.turns, s.clients.Memberships(orgCluster), held, match, edit, "membership")
}

// DeleteMembership deletes the Membership with the UID of held, which may be gone already.
func (s *Store) DeleteMembership(ctx context.Context, orgCluster string, held *v1alpha1.Membership) error {
	err := remove(ctx, s.clients.Memberships(orgCluster), held, nil, "membership")
	if errs.Is(err, errs.NotFound) {
		return nil
	}
	return err
}

package store

import (
	"context"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// ListAccessRequests lists all AccessRequests of an Organization in kcp.
func (s *Store) ListAccessRequests(ctx context.Context, orgCluster string) ([]v1alpha1.AccessRequest, error) {
	all, err := list[v1alpha1.AccessRequestList](ctx, s.clients.AccessRequests(orgCluster), "accessrequests", "requests")
	return all.Items, err
}

// GetAccessRequest reads an AccessRequest of an Organization from kcp. It returns nil if there is none.
func (s *Store) GetAccessRequest(ctx context.Context, orgCluster, name string) (*v1alpha1.AccessRequest, error) {
	return find(ctx, s.clients.AccessRequests(orgCluster), name, "request")
}

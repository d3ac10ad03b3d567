package store

import (
	"context"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// ListAccessRequests lists all AccessRequests of an Organization in kcp.
func (s *Store) ListAccessRequests(ctx context.Context, orgCluster string) ([]v1alpha1.AccessRequest, error) {
	var list v1alpha1.AccessRequestList
	err := retry(ctx, func(ctx context.Context) error {
		list = v1alpha1.AccessRequestList{}
		return s.clients.AccessRequests(orgCluster).GetClient().Get().Resource("accessrequests").Do(ctx).Into(&list)
	})
	return list.Items, convert(err, "requests")
}

// GetAccessRequest reads an AccessRequest of an Organization from kcp. It returns nil if there is none.
func (s *Store) GetAccessRequest(ctx context.Context, orgCluster, name string) (*v1alpha1.AccessRequest, error) {
	r, err := read(ctx, s.clients.AccessRequests(orgCluster), name, "request")
	if errs.Is(err, errs.NotFound) {
		return nil, nil
	}
	return r, err
}

package store

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
)

// CreateMembership makes a Membership in the Org whose own workspace is in the
// logical cluster. Where there is one of that name already it is returned, and
// made is false.
func (s *Store) CreateMembership(ctx context.Context, orgCluster string, m *v1alpha1.Membership) (held *v1alpha1.Membership, made bool, err error) {
	client := s.clients.Memberships(orgCluster)
	err = retry(ctx, func(ctx context.Context) error {
		held, err = client.Create(ctx, m, metav1.CreateOptions{FieldManager: kcp.FieldManager})
		if made = err == nil; !apierrors.IsAlreadyExists(err) {
			return err
		}
		held, err = client.Get(ctx, m.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			// It went away in between: the next try makes it.
			return apierrors.NewServerTimeout(v1alpha1.SchemeGroupVersion.WithResource("memberships").GroupResource(), "create", 0)
		}
		return err
	})
	return held, made, convert(err, "membership")
}

// ListMemberships reads all Memberships of an Org from kcp itself: for rules that
// must not trust a view that is behind.
func (s *Store) ListMemberships(ctx context.Context, orgCluster string) ([]v1alpha1.Membership, error) {
	var list v1alpha1.MembershipList
	err := retry(ctx, func(ctx context.Context) error {
		list = v1alpha1.MembershipList{}
		return s.clients.Memberships(orgCluster).GetClient().Get().Resource("memberships").Do(ctx).Into(&list)
	})
	return list.Items, convert(err, "members")
}

// PatchMembership is PatchUser for a Membership in the Org whose own workspace is in
// the logical cluster.
func (s *Store) PatchMembership(ctx context.Context, orgCluster, name string, patch any, match func(version string) error) (*v1alpha1.Membership, error) {
	return mergePatch(ctx, &s.turns, s.clients.Memberships(orgCluster), name, patch, match, "membership")
}

// DeleteMembership removes a Membership, on the condition of PatchUser. It is
// NotFound where there is none.
func (s *Store) DeleteMembership(ctx context.Context, orgCluster, name string, match func(version string) error) error {
	client := s.clients.Memberships(orgCluster)
	if match != nil {
		return deleteIf(ctx, client, name, match, "membership")
	}
	tries := 0
	err := retry(ctx, func(ctx context.Context) error {
		tries++
		err := client.Delete(ctx, name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) && tries > 1 {
			// The answer to the first try was lost.
			return nil
		}
		return err
	})
	return convert(err, "membership")
}

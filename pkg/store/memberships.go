package store

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
)

// CreateMembership creates a Membership in the logical cluster of an Organization. If one of
// that name exists, it returns that one and made is false.
func (s *Store) CreateMembership(ctx context.Context, orgCluster string, m *v1alpha1.Membership) (held *v1alpha1.Membership, made bool, err error) {
	client := s.clients.Memberships(orgCluster)
	err = retry(ctx, func(ctx context.Context) error {
		held, err = client.Create(ctx, m, metav1.CreateOptions{FieldManager: kcp.FieldManager})
		if made = err == nil; !apierrors.IsAlreadyExists(err) {
			return err
		}
		held, err = client.Get(ctx, m.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			// It was deleted in between. The next attempt creates it.
			return apierrors.NewServerTimeout(v1alpha1.SchemeGroupVersion.WithResource("memberships").GroupResource(), "create", 0)
		}
		return err
	})
	return held, made, convert(err, "membership")
}

// ListMemberships lists all Memberships of an Organization in kcp, for rules that must not
// be evaluated on a cache.
func (s *Store) ListMemberships(ctx context.Context, orgCluster string) ([]v1alpha1.Membership, error) {
	var list v1alpha1.MembershipList
	err := retry(ctx, func(ctx context.Context) error {
		list = v1alpha1.MembershipList{}
		return s.clients.Memberships(orgCluster).GetClient().Get().Resource("memberships").Do(ctx).Into(&list)
	})
	return list.Items, convert(err, "members")
}

// PatchMembership is PatchUser for a Membership in the logical cluster of an Organization.
func (s *Store) PatchMembership(ctx context.Context, orgCluster, name string, patch any, match func(version string) error) (*v1alpha1.Membership, error) {
	return mergePatch(ctx, s.turns, s.clients.Memberships(orgCluster), name, patch, match, "membership")
}

// DeleteMembership deletes a Membership. match is the precondition described at PatchUser.
// The error is NotFound if there is no such Membership.
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
			// The first attempt deleted it and its answer was lost.
			return nil
		}
		return err
	})
	return convert(err, "membership")
}

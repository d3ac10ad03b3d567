package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	membersAt = "/clusters/org1/apis/tenancy.kedge.faros.sh/v1alpha1/memberships"
	bobAt     = membersAt + "/bob"
)

func bob(role v1alpha1.Role) *v1alpha1.Membership { return tenancy.NewMembership("bob", "", role) }

func TestListMemberships_readsKCP(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	none, err := s.store().ListMemberships(t.Context(), "org1")
	require.NoError(t, err)
	require.Empty(t, none)
	s.made(bobAt, "b", bob(v1alpha1.RoleMember))
	s.made(membersAt+"/w.bob", "w", tenancy.NewMembership("bob", "w", v1alpha1.RoleAdmin))
	s.made("/clusters/org2/apis/tenancy.kedge.faros.sh/v1alpha1/memberships/carol", "c", tenancy.NewMembership("carol", "", v1alpha1.RoleAdmin))
	weak := 2
	s.refuse = func(string) *apierrors.StatusError {
		if weak--; weak >= 0 {
			return apierrors.NewServiceUnavailable("a moment")
		}
		return nil
	}
	list, err := s.store().ListMemberships(t.Context(), "org1")
	require.NoError(t, err)
	require.Len(t, list, 2)
	weak = 1 << 20
	_, err = s.store().ListMemberships(t.Context(), "org1")
	require.True(t, errs.Is(err, errs.Unavailable), "an empty list would say that there is no admin: %v", err)
}

func TestGetMembership_returnsNilForNone(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m, err := s.store().GetMembership(t.Context(), "org1", "bob")
	require.NoError(t, err)
	require.Nil(t, m)
	s.made(bobAt, "b", bob(v1alpha1.RoleAdmin))
	m, err = s.store().GetMembership(t.Context(), "org1", "bob")
	require.NoError(t, err)
	require.Equal(t, v1alpha1.RoleAdmin, m.Spec.Role)
	s.refuse = func(string) *apierrors.StatusError { return apierrors.NewServiceUnavailable("a moment") }
	_, err = s.store().GetMembership(t.Context(), "org1", "bob")
	require.True(t, errs.Is(err, errs.Unavailable), "none would say that the author is no admin any more: %v", err)
}

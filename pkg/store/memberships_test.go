package store_test

import (
	"net/http"
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

func TestCreateMembership_returnsTheExistingOne(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m, made, err := s.store().CreateMembership(t.Context(), "org1", bob(v1alpha1.RoleMember))
	require.NoError(t, err)
	require.True(t, made)
	require.NotEmpty(t, m.UID)
	m, made, err = s.store().CreateMembership(t.Context(), "org1", bob(v1alpha1.RoleAdmin))
	require.NoError(t, err)
	require.False(t, made)
	require.Equal(t, v1alpha1.RoleMember, m.Spec.Role, "as it was")
	_, made, err = s.store().CreateMembership(t.Context(), "org2", bob(v1alpha1.RoleAdmin))
	require.NoError(t, err)
	require.True(t, made, "another Org is another place")
}

func TestCreateMembership_succeedsWhenTheAnswerIsLost(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	lost := 1
	s.lose = func(string) bool { lost--; return lost >= 0 }
	m, _, err := s.store().CreateMembership(t.Context(), "org1", bob(v1alpha1.RoleMember))
	require.NoError(t, err)
	require.Equal(t, "bob", m.Name)
}

// The Membership exists at the create and is deleted before the read.
func TestCreateMembership_createsWhatWasDeletedInBetween(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.made(bobAt, "old", bob(v1alpha1.RoleAdmin))
	s.before = func(method string) {
		if method == http.MethodGet {
			s.remove(bobAt)
		}
	}
	m, made, err := s.store().CreateMembership(t.Context(), "org1", bob(v1alpha1.RoleMember))
	require.NoError(t, err)
	require.True(t, made)
	require.Equal(t, v1alpha1.RoleMember, m.Spec.Role)
}

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

func TestMembership_patchAndDeleteOfNoneAreNotFound(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	patch := map[string]any{"spec": map[string]any{"role": "admin"}}
	_, err := s.store().PatchMembership(t.Context(), "org1", "bob", patch, nil)
	require.True(t, errs.Is(err, errs.NotFound))
	require.True(t, errs.Is(s.store().DeleteMembership(t.Context(), "org1", "bob", nil), errs.NotFound))

	s.made(bobAt, "b", bob(v1alpha1.RoleMember))
	m, err := s.store().PatchMembership(t.Context(), "org1", "bob", patch, nil)
	require.NoError(t, err)
	require.Equal(t, v1alpha1.RoleAdmin, m.Spec.Role)
	require.NoError(t, s.store().DeleteMembership(t.Context(), "org1", "bob", nil))
	require.False(t, s.held(bobAt, m))
}

func TestDeleteMembership_succeedsWhenTheAnswerIsLost(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.made(bobAt, "b", bob(v1alpha1.RoleMember))
	lost := 1
	s.lose = func(string) bool { lost--; return lost >= 0 }
	require.NoError(t, s.store().DeleteMembership(t.Context(), "org1", "bob", nil))
	require.Len(t, s.took(), 2)
}

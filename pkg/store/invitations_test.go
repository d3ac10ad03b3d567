package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

func TestInvitations_areReadFromKCP(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	i, err := s.store().GetInvitation(t.Context(), "org1", "i")
	require.NoError(t, err)
	require.Nil(t, i)
	made := &v1alpha1.Invitation{Spec: v1alpha1.InvitationSpec{Role: v1alpha1.RoleAdmin}}
	made.Name = "i"
	s.made("/clusters/org1/apis/tenancy.kedge.faros.sh/v1alpha1/invitations/i", "u", made)
	i, err = s.store().GetInvitation(t.Context(), "org1", "i")
	require.NoError(t, err)
	require.Equal(t, v1alpha1.RoleAdmin, i.Spec.Role)
	all, err := s.store().ListInvitations(t.Context(), "org1")
	require.NoError(t, err)
	require.Len(t, all, 1)
	s.refuse = func(string) *apierrors.StatusError { return apierrors.NewServiceUnavailable("a moment") }
	_, err = s.store().ListInvitations(t.Context(), "org1")
	require.True(t, errs.Is(err, errs.Unavailable), "an empty list would say that the quota is free: %v", err)
}

package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

func TestAccessRequests_areReadFromKCP(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	r, err := s.store().GetAccessRequest(t.Context(), "org1", "r")
	require.NoError(t, err)
	require.Nil(t, r)
	made := &v1alpha1.AccessRequest{Spec: v1alpha1.AccessRequestSpec{Kind: v1alpha1.RequestSudo}}
	made.Name = "r"
	s.made("/clusters/org1/apis/tenancy.kedge.faros.sh/v1alpha1/accessrequests/r", "u", made)
	r, err = s.store().GetAccessRequest(t.Context(), "org1", "r")
	require.NoError(t, err)
	require.Equal(t, v1alpha1.RequestSudo, r.Spec.Kind)
	all, err := s.store().ListAccessRequests(t.Context(), "org1")
	require.NoError(t, err)
	require.Len(t, all, 1)
	s.refuse = func(string) *apierrors.StatusError { return apierrors.NewServiceUnavailable("a moment") }
	_, err = s.store().ListAccessRequests(t.Context(), "org1")
	require.True(t, errs.Is(err, errs.Unavailable), "an empty list would say that the quota is free: %v", err)
}

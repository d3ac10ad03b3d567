package store_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	ciName = "cccccccc-1111-4111-8111-000000000001"
	ciAt   = "/clusters/org1/apis/tenancy.kedge.faros.sh/v1alpha1/bots/" + ciName
)

func ci() *v1alpha1.Bot {
	return tenancy.NewBot(ciName, "w", "CI", v1alpha1.RoleMember, "alice", "")
}

func TestGetBot_returnsNilForNone(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	b, err := s.store().GetBot(t.Context(), "org1", ciName)
	require.NoError(t, err)
	require.Nil(t, b)
	s.made(ciAt, "b", ci())
	b, err = s.store().GetBot(t.Context(), "org1", ciName)
	require.NoError(t, err)
	require.Equal(t, "CI", b.Spec.DisplayName)
}

func TestChangeBot_changesTheNewestOnly(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.made(ciAt, "b", ci())
	b, err := s.store().GetBot(t.Context(), "org1", ciName)
	require.NoError(t, err)
	name := func(to string) func(context.Context, *v1alpha1.Bot) error {
		return func(_ context.Context, b *v1alpha1.Bot) error { b.Spec.DisplayName += to; return nil }
	}
	_, err = s.store().ChangeBot(t.Context(), b, nil, name("1"))
	require.NoError(t, err)
	changed, err := s.store().ChangeBot(t.Context(), b, nil, name("2"))
	require.NoError(t, err, "what the cache has is behind")
	require.Equal(t, "CI12", changed.Spec.DisplayName)
	_, err = s.store().ChangeBot(t.Context(), b, func(version string) error {
		require.Equal(t, changed.ResourceVersion, version)
		return errs.New(errs.PreconditionFailed, "changed")
	}, name("3"))
	require.True(t, errs.Is(err, errs.PreconditionFailed))
	other := changed.DeepCopy()
	other.UID = "of another Bot"
	for _, match := range []func(string) error{nil, func(string) error { return nil }} {
		other.ResourceVersion = "1"
		_, err = s.store().ChangeBot(t.Context(), other, match, name("4"))
		require.True(t, errs.Is(err, errs.NotFound), "%v", err)
	}
}

func TestDeleteBot_deletesNoOther(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.made(ciAt, "b", ci())
	b, err := s.store().GetBot(t.Context(), "org1", ciName)
	require.NoError(t, err)
	other := b.DeepCopy()
	other.UID = "of another Bot"
	require.Error(t, s.store().DeleteBot(t.Context(), other, nil))
	require.NotNil(t, s.Get(ciAt))
	require.True(t, errs.Is(s.store().DeleteBot(t.Context(), b, func(string) error { return errs.New(errs.PreconditionFailed, "changed") }), errs.PreconditionFailed))
	lost := true
	s.lose = func(method string) bool { defer func() { lost = false }(); return lost && method == http.MethodDelete }
	require.NoError(t, s.store().DeleteBot(t.Context(), b, nil), "its answer is lost once")
}

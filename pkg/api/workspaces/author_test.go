package workspaces_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/api/workspaces"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// until has kcp lose the rights of all authors from when lost returns true.
func until(lost func() bool) func(*workspaces.Handler) {
	return func(h *workspaces.Handler) { h.Rights = h.Views.(*apitest.World).RightsUntil(lost) }
}

func TestCreate_ofARemovedMemberIsRefusedWhenItIsWritten(t *testing.T) {
	t.Parallel()
	lost := true
	f := newFixture(t, until(func() bool { return lost }))
	f.post(apitest.Member, `{"displayName": "Staging"}`).Refused(t, http.StatusForbidden)
	require.Zero(t, f.store.writes)
	lost = false
	f.post(apitest.Member, `{"displayName": "Staging"}`).Object(t, http.StatusCreated)
}

// The maker of a Workspace was removed after it was claimed: it stays, without them.
func TestCreate_tellsAMakerWhoWasRemovedMeanwhile(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.world.Later(func(w *apitest.World) { w.Leave(apitest.Member, apitest.Acme, "") })
	answer := f.post(apitest.Member, `{"displayName": "Staging"}`)
	require.Contains(t, answer.Refused(t, http.StatusForbidden).Message, "stays")
	require.Equal(t, 1, f.store.writes)
}

func TestUndelete_ofARemovedAdminIsRefusedWhenItIsWritten(t *testing.T) {
	t.Parallel()
	lost := false
	f := newFixture(t, until(func() bool { return lost }))
	marking(t, f)
	f.remove(apitest.WSAdmin).Object(t, http.StatusOK)
	lost = true
	f.undelete(apitest.WSAdmin).Refused(t, http.StatusForbidden)
	require.Equal(t, 1, f.store.writes)
	lost = false
	require.Equal(t, "admin", f.undelete(apitest.WSAdmin).Object(t, http.StatusOK)["role"])
}

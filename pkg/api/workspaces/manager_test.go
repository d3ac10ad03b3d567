package workspaces_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// withManager is a fixture in which nina is a manager of Dev without a role there.
func withManager(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	f.world.PutUser(apitest.Person("nina"))
	m := apitest.Membership("nina", apitest.Dev, "")
	m.Spec.Manager = true
	f.world.PutMembership(apitest.Acme, m)
	return f
}

func TestManager_saysWhoMayAskForRights(t *testing.T) {
	t.Parallel()
	f := withManager(t)
	f.keeps(t)
	for _, requests := range []string{"members", "none"} {
		f.patch(apitest.WSMember, `{"requests": "`+requests+`"}`).Refused(t, http.StatusForbidden)
		f.patch("nina", `{"requests": "`+requests+`"}`).Object(t, http.StatusOK)
		ws, _ := f.world.Workspace(apitest.Acme, apitest.Dev)
		require.Equal(t, requests == "members", ws.Requests == "members")
	}
}

// A full audit log refuses what opens a Workspace to requests, and not what closes it.
func TestManager_closesAWorkspaceToRequestsAtAnyTime(t *testing.T) {
	t.Parallel()
	f := withManager(t)
	f.keeps(t)
	f.patch("nina", `{"requests": "members"}`).Object(t, http.StatusOK)
	f.world.FillAuditLog()
	f.patch("nina", `{"requests": "members", "displayName": "Shop"}`).Refused(t, http.StatusServiceUnavailable)
	f.patch("nina", `{"requests": "none", "displayName": "Shop"}`).Refused(t, http.StatusServiceUnavailable)
	f.patch("nina", `{"requests": "none"}`).Object(t, http.StatusOK)
	ws, _ := f.world.Workspace(apitest.Acme, apitest.Dev)
	require.NotEqual(t, "members", ws.Requests)
}

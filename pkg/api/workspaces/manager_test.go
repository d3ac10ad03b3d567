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

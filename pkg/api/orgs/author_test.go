package orgs_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

func TestPatch_ofARemovedAdminIsRefusedWhenItIsWritten(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	lost := true
	f.handler.Rights = f.world.RightsUntil(func() bool { return lost })
	f.patch(apitest.Admin, `{"defaultAccess": "view"}`).Refused(t, http.StatusForbidden)
	require.Zero(t, f.store.writes)
	lost = false
	f.patch(apitest.Admin, `{"defaultAccess": "view"}`).Object(t, http.StatusOK)
}

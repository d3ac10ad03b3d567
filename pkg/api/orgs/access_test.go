package orgs_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// The answer waits until the bindings in kcp match the new defaultAccess.
func TestDefaultAccess_isAnsweredWhenTheBindingsFollow(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.unbound = true
	f.patch(apitest.Admin, `{"displayName": "Acme Inc."}`).Object(t, http.StatusOK)
	require.True(t, f.unbound, "a name is no right in kcp")
	f.behind = func(*apitest.World) { f.unbound = false }
	f.patch(apitest.Admin, `{"defaultAccess": "view"}`).Object(t, http.StatusOK)
	require.False(t, f.unbound)
}

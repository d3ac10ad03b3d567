package workspaces_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/workspaces"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// What is told of a Workspace by its UUID, and the groups that are let into it, must not be of another one that the
// same key makes after a purge.
func TestCreate_neverRepeatsTheUUIDOfAPurgedWorkspace(t *testing.T) {
	t.Parallel()
	n := 0
	f := newFixture(t, func(h *workspaces.Handler) {
		h.NewUUID = func() string { n++; return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }
	})
	create := func() string {
		call := apitest.Call{As: apitest.Member, Method: http.MethodPost, Path: path(), Org: apitest.Acme, Body: `{"displayName": "Staging"}`}
		call.Header = http.Header{"Idempotency-Key": {"k"}}
		return call.Do(f.http).Object(t, http.StatusCreated)["uuid"].(string)
	}
	first := create()
	require.Equal(t, first, create(), "a repetition")
	require.Equal(t, 1, f.store.writes)

	f.world.DropWorkspace(first)
	f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.Spec.WorkspaceClaims = nil })
	require.NotEqual(t, first, create())
	require.Equal(t, 2, f.store.writes)
}

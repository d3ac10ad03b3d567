package providers_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

func TestAudit_saysWhichClaimsAreAccepted(t *testing.T) {
	t.Parallel()
	call := func(method, path, body string) apitest.Call {
		return apitest.Call{As: apitest.Admin, Method: method, Path: path, Body: body, Org: apitest.Acme, Workspace: apitest.Dev}
	}
	apitest.RequireIntents(t, func(t *testing.T) (http.Handler, *apitest.World) { return newWorld(t).audited() }, map[string]apitest.Intent{
		"accept":              {Call: call(http.MethodPost, at+widgets+"/enable", accepting), Object: widgets, Facts: `{"slug":"widgets","acceptedClaims":["configmaps"]}`},
		"reject, named twice": {Call: call(http.MethodPost, at+widgets+"/enable", `{"rejectClaims":[{"group":"","resource":"configmaps"},{"group":"","resource":"configmaps"}]}`), Object: widgets, Facts: `{"slug":"widgets","rejectedClaims":["configmaps"]}`},
	})
	apitest.RequireIntents(t, func(t *testing.T) (http.Handler, *apitest.World) {
		w := newWorld(t)
		require.Less(t, w.enable(apitest.Admin).Code, http.StatusMultipleChoices)
		return w.audited()
	}, map[string]apitest.Intent{
		"take a claim away": {
			Call:   call(http.MethodPost, at+widgets+"/enable", `{"rejectClaims":[{"group":"","resource":"configmaps"}]}`),
			Object: widgets, Facts: `{"slug":"widgets","rejectedClaims":["configmaps"]}`, Reduces: true,
		},
		"disable": {Call: call(http.MethodDelete, at+widgets+"/enable?confirm=true", ""), Object: widgets, Facts: `null`, Reduces: true},
	})
}

// What changes nothing has an outcome only.
func TestAudit_hasNoIntentOfADryRun(t *testing.T) {
	t.Parallel()
	h, tenants := newWorld(t).audited()
	tenants.FillAuditLog()
	call := apitest.Call{As: apitest.Admin, Method: http.MethodPost, Path: at + widgets + "/enable?dryRun=true", Body: accepting, Org: apitest.Acme, Workspace: apitest.Dev}
	require.Equal(t, http.StatusOK, call.Do(h).Code)
}

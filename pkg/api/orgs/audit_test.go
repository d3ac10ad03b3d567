package orgs_test

import (
	"net/http"
	"testing"

	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

func TestAudit_saysWhatIsSet(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T) (http.Handler, *apitest.World) {
		f := newFixture(t)
		return f.http, f.world
	}
	patch := func(body string) apitest.Call {
		return apitest.Call{As: apitest.Admin, Method: http.MethodPatch, Path: "/api/orgs/" + apitest.Acme, Org: apitest.Acme, Body: body}
	}
	apitest.RequireIntents(t, start, map[string]apitest.Intent{
		"open":            {Call: patch(`{"defaultAccess":"view"}`), Facts: `{"defaultAccess":"view"}`},
		"close":           {Call: patch(`{"defaultAccess":"none","workspaceCreation":"admin","catalogEntryCreation":"admin"}`), Facts: `{"defaultAccess":"none","workspaceCreation":"admin","catalogEntryCreation":"admin"}`, Reduces: true},
		"close and open":  {Call: patch(`{"defaultAccess":"none","workspaceCreation":"members"}`), Facts: `{"defaultAccess":"none","workspaceCreation":"members"}`},
		"name and number": {Call: patch(`{"displayName":"Other","billing":{"costCenter":"7"}}`), Facts: `{"fields":["billing","displayName"]}`},
	})
}

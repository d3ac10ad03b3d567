package admin_test

import (
	"net/http"
	"testing"

	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

func TestAudit_saysWhatPlatformAdminsDecide(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T) (http.Handler, *apitest.World) {
		f := newFixture(t)
		return f.http, f.world
	}
	patch := func(path, body string) apitest.Call {
		return apitest.Call{As: apitest.Operator, Method: http.MethodPatch, Path: "/api/admin/" + path, Body: body}
	}
	user, org := "users/"+apitest.Member, "orgs/"+apitest.Acme
	apitest.RequireIntents(t, start, map[string]apitest.Intent{
		"approve":         {Call: patch(user, `{"registration":"Approved"}`), Object: apitest.Member, Facts: `{"registration":"Approved"}`},
		"reject":          {Call: patch(user, `{"registration":"Rejected"}`), Object: apitest.Member, Facts: `{"registration":"Rejected"}`, Reduces: true},
		"reject and give": {Call: patch(user, `{"registration":"Rejected","orgQuota":7}`), Object: apitest.Member, Facts: `{"registration":"Rejected","quota":"7"}`},
		"a quota":         {Call: patch(org, `{"workspaceQuota":7}`), Facts: `{"quota":"7"}`},
		"a limit":         {Call: patch(org, `{"storage":{"bytes":"10Gi","workspaceObjects":null}}`), Facts: `{"quota":"bytes=10Gi workspaceObjects=default"}`},
		"quota and limit": {Call: patch(org, `{"workspaceQuota":7,"storage":null}`), Facts: `{"quota":"7 storage=default"}`},
		"the default":     {Call: patch(org, `{"workspaceQuota":null}`), Facts: `{"quota":"default"}`},
	})
}

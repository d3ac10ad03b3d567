package bots_test

import (
	"net/http"
	"testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

func TestAudit_saysWhatWasDecidedAboutBots(t *testing.T) {
	t.Parallel()
	const admin = "cccccccc-1111-4111-8111-000000000004"
	start := func(t *testing.T) (http.Handler, *apitest.World) {
		w, tenants := newWorld(t), apitest.NewWorld()
		w.put(tenancy.NewBot(admin, apitest.Dev, "Admin", v1alpha1.RoleAdmin, apitest.Admin, ""))
		w.settle()
		w.give("one", "two")
		w.trust("rule")
		return w.handler(tenants), tenants
	}
	call := func(method, path, body string) apitest.Call {
		return apitest.Call{As: apitest.WSAdmin, Method: method, Path: at + path, Body: body, Org: apitest.Acme, Workspace: apitest.Dev}
	}
	apitest.RequireIntents(t, start, map[string]apitest.Intent{
		"create":         {Call: call(http.MethodPost, "", `{"displayName":"New","role":"admin"}`), Object: next, Facts: `{"role":"admin"}`},
		"raise":          {Call: call(http.MethodPatch, "/"+ci, `{"role":"admin"}`), Object: ci, Facts: `{"role":"admin"}`},
		"lower":          {Call: call(http.MethodPatch, "/"+admin, `{"role":"member"}`), Object: admin, Facts: `{"role":"member"}`, Reduces: true},
		"lower, rename":  {Call: call(http.MethodPatch, "/"+admin, `{"role":"member","displayName":"B"}`), Object: admin, Facts: `{"role":"member","fields":["displayName"]}`},
		"rename":         {Call: call(http.MethodPatch, "/"+ci, `{"displayName":"B"}`), Object: ci, Facts: `{"fields":["displayName"]}`},
		"delete":         {Call: call(http.MethodDelete, "/"+ci, ""), Object: ci, Facts: `null`, Reduces: true},
		"issue a token":  {Call: call(http.MethodPost, "/"+ci+"/tokens", `{"name":"CI","expirationSeconds":3600}`), Object: ci, Facts: `{"token":"` + next + `","tokenExpiresAt":"2026-03-01T13:00:00Z"}`},
		"revoke a token": {Call: call(http.MethodDelete, "/"+ci+"/tokens/one", ""), Object: ci, Facts: `{"token":"one"}`, Reduces: true},
		"rotate a token": {Call: call(http.MethodPost, "/"+ci+"/tokens/one/rotate", `{}`), Object: ci, Facts: `{"token":"` + next + `","rotated":"one","tokenExpiresAt":"2026-03-01T13:00:00Z"}`},
		"add a rule":     {Call: call(http.MethodPost, "/"+ci+"/trust", ruleBody), Object: ci, Facts: `{"trust":"` + next + `","issuer":"` + github + `"}`},
		"remove a rule":  {Call: call(http.MethodDelete, "/"+ci+"/trust/rule", ""), Object: ci, Facts: `{"trust":"rule"}`, Reduces: true},
		"revoke all":     {Call: call(http.MethodDelete, "/"+ci+"/tokens", ""), Object: ci, Facts: `{"all":true}`, Reduces: true},
	})
}

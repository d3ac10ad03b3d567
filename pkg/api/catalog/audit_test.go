package catalog_test

import (
	"net/http"
	"testing"

	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

func TestAudit_saysWhatIsPublished(t *testing.T) {
	t.Parallel()
	entry := newWorld(t).put(apitest.Acme, "held", apitest.Admin)
	start := func(t *testing.T) (http.Handler, *apitest.World) {
		w := newWorld(t)
		w.put(apitest.Acme, "held", apitest.Admin)
		return w.handler(), w.tenants
	}
	call := func(method, path, body string) apitest.Call {
		return apitest.Call{As: apitest.Admin, Method: method, Path: inAcme + path, Body: body, Org: apitest.Acme}
	}
	body := func(slug, more string) string {
		return `{"slug":"` + slug + `","displayName":"The ` + slug + `"` + more + `,"apiExport":{"path":"` + provider + `","name":"` + slug + `"},"backend":{"url":"https://` + slug + `.example.org"}}`
	}
	apitest.RequireIntents(t, start, map[string]apitest.Intent{
		"replace": {Call: call(http.MethodPut, "/"+entry.Name, body("held", `,"version":"2"`)), Object: entry.Name, Facts: `{"slug":"held","fields":["version"]}`},
		"delete as a platform admin": {
			Call:   apitest.Call{As: apitest.Operator, Method: http.MethodDelete, Path: global + "/" + entry.Name},
			Object: entry.Name, Facts: `{"slug":"held"}`, Reduces: true,
		},
		"delete": {Call: call(http.MethodDelete, "/"+entry.Name, ""), Object: entry.Name, Facts: `{"slug":"held"}`, Reduces: true},
	})
}

package admin_test

import (
	"net/http"
	"testing"

	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

func TestPatch_honoursIfMatch(t *testing.T) {
	t.Parallel()
	for path, body := range map[string]string{bobsPath: `{"registration": "Rejected"}`, acmesPath: `{"workspaceQuota": 7}`} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			apitest.Conditional(t, http.StatusOK, 1, func(t *testing.T, header http.Header, version string) (apitest.Answer, int) {
				f := newFixture(t)
				f.store.version = version
				call := apitest.Call{As: apitest.Operator, Method: http.MethodPatch, Path: "/api/admin/" + path, Body: body, Header: header}
				return call.Do(f.http), len(f.store.patches)
			})
			f := newFixture(t)
			f.patch(apitest.Operator, path, body).Tagged(t, http.StatusOK, "43")
			f.get(apitest.Operator, "users").Untagged(t, http.StatusOK)
		})
	}
}

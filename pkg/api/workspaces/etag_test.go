package workspaces_test

import (
	"net/http"
	"testing"

	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

func TestETag_isThatOfTheWorkspace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.get(apitest.WSAdmin, apitest.Dev).Tagged(t, http.StatusOK, apitest.FirstVersion)
	f.list(apitest.WSAdmin, "").Untagged(t, http.StatusOK)
	f.patch(apitest.WSAdmin, `{}`).Tagged(t, http.StatusOK, apitest.FirstVersion)
	f.patch(apitest.WSAdmin, `{"displayName": "New"}`).Tagged(t, http.StatusOK, "43")
	f.get(apitest.WSAdmin, apitest.Dev).Tagged(t, http.StatusOK, "43")
	f.post(apitest.Admin, `{"displayName": "Another"}`).Tagged(t, http.StatusCreated, apitest.FirstVersion)
	f = newFixture(t)
	call := apitest.Call{As: apitest.Admin, Method: http.MethodPost, Path: path(), Org: apitest.Acme, Body: `{"displayName": "Later"}`, Header: http.Header{"Prefer": {"respond-async"}}}
	call.Do(f.http).Untagged(t, http.StatusAccepted)
}

func TestIfMatch_refusesAWorkspaceThatHasChanged(t *testing.T) {
	t.Parallel()
	for method, body := range map[string]string{http.MethodPatch: `{"displayName": "New"}`, http.MethodDelete: ""} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			apitest.Conditional(t, http.StatusOK, 1, func(t *testing.T, header http.Header, version string) (apitest.Answer, int) {
				f := newFixture(t)
				marking(t, f)
				f.store.version = version
				call := apitest.Call{As: apitest.WSAdmin, Method: method, Path: path(apitest.Dev), Org: apitest.Acme, Workspace: apitest.Dev, Body: body, Header: header}
				return call.Do(f.http), f.store.writes
			})
		})
	}
}

func TestIfMatch_isJudgedAfterTheRightAndOfNothingToo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	call := apitest.Call{Method: http.MethodPatch, Path: path(apitest.Dev), Org: apitest.Acme, Workspace: apitest.Dev, Body: `{}`, Header: apitest.IfMatch(`"41"`)}
	call.As = apitest.WSMember
	call.Do(f.http).Untagged(t, http.StatusForbidden)
	call.As = apitest.WSAdmin
	call.Do(f.http).Refused(t, http.StatusPreconditionFailed)
}

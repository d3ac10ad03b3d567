package orgs_test

import (
	"net/http"
	"testing"

	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

func TestETag_isThatOfTheOrg(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.get(apitest.Admin, acmePath).Tagged(t, http.StatusOK, apitest.FirstVersion)
	f.get(apitest.Admin, "/api/orgs").Untagged(t, http.StatusOK)
	f.patch(apitest.Admin, `{}`).Tagged(t, http.StatusOK, apitest.FirstVersion)
	f.patch(apitest.Admin, `{"displayName": "New"}`).Tagged(t, http.StatusOK, "43")
	f.get(apitest.Admin, acmePath).Tagged(t, http.StatusOK, "43")
	f.post(apitest.Admin, `{"displayName": "Another"}`).Tagged(t, http.StatusCreated, apitest.FirstVersion)
	f = newFixture(t)
	call := apitest.Call{As: apitest.Admin, Method: http.MethodPost, Path: "/api/orgs", Body: `{"displayName": "Later"}`, Header: http.Header{"Prefer": {"respond-async"}}}
	call.Do(f.http).Untagged(t, http.StatusAccepted)
}

func TestIfMatch_refusesAnOrgThatHasChanged(t *testing.T) {
	t.Parallel()
	for method, body := range map[string]string{http.MethodPatch: `{"displayName": "New"}`, http.MethodDelete: ""} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			apitest.Conditional(t, http.StatusOK, 1, func(t *testing.T, header http.Header, version string) (apitest.Answer, int) {
				f := newFixture(t)
				marking(t, f)
				f.store.version = version
				call := apitest.Call{As: apitest.Admin, Method: method, Path: acmePath, Org: apitest.Acme, Body: body, Header: header}
				return call.Do(f.http), f.store.writes
			})
		})
	}
}

func TestIfMatch_holdsForAPatchOfNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	call := apitest.Call{As: apitest.Admin, Method: http.MethodPatch, Path: acmePath, Org: apitest.Acme, Body: `{}`, Header: apitest.IfMatch(`"41"`)}
	call.Do(f.http).Refused(t, http.StatusPreconditionFailed)
	call.Header = apitest.IfMatch(apitest.Tag(apitest.FirstVersion))
	call.Do(f.http).Object(t, http.StatusOK)
}

// A precondition must not reveal an object's version to an unauthorized caller.
func TestIfMatch_isJudgedAfterTheRight(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, method := range []string{http.MethodPatch, http.MethodDelete} {
		for _, header := range []http.Header{nil, apitest.IfMatch(`"41"`), apitest.IfMatch("nonsense")} {
			call := apitest.Call{As: apitest.Member, Method: method, Path: acmePath, Org: apitest.Acme, Header: header}
			if method == http.MethodPatch {
				call.Body = `{"displayName": "Mine"}`
			}
			call.Do(f.http).Untagged(t, http.StatusForbidden)
		}
	}
}

func TestIfMatch_isIgnoredByAnUndeletion(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	marking(t, f)
	f.world.DeleteOrg(apitest.Acme)
	call := apitest.Call{As: apitest.Admin, Method: http.MethodPost, Path: acmePath + "/undelete", Org: apitest.Acme, Header: apitest.IfMatch(`"41"`)}
	call.Do(f.http).Tagged(t, http.StatusOK, "43")
}

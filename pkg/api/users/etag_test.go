package users_test

import (
	"net/http"
	"testing"

	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

const next = "43"

func TestETag_isThatOfTheUser(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	marking(t, f)
	f.get(apitest.Member, "").Tagged(t, http.StatusOK, apitest.FirstVersion)
	f.patch(apitest.Member, `{}`).Tagged(t, http.StatusOK, apitest.FirstVersion)
	f.patch(apitest.Member, `{"displayName": "New"}`).Tagged(t, http.StatusOK, next)
	f.get(apitest.Member, "").Tagged(t, http.StatusOK, next)
	f.get(apitest.Member, "/memberships").Untagged(t, http.StatusOK)
	f.remove(apitest.Member, "me").Tagged(t, http.StatusAccepted, "44")
}

func TestIfMatch_refusesAUserThatHasChanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		as, method, path, body string
		code                   int
	}{
		"a change":              {apitest.Member, http.MethodPatch, "me", `{"displayName": "New"}`, http.StatusOK},
		"a deletion":            {apitest.Member, http.MethodDelete, "me", "", http.StatusAccepted},
		"by name":               {apitest.Member, http.MethodDelete, apitest.Member, "", http.StatusAccepted},
		"by an admin of theirs": {apitest.Operator, http.MethodDelete, apitest.Member, "", http.StatusAccepted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			apitest.Conditional(t, c.code, 1, func(t *testing.T, header http.Header, version string) (apitest.Answer, int) {
				f := newFixture(t)
				marking(t, f)
				f.store.version = version
				answer := apitest.Call{As: c.as, Method: c.method, Path: "/api/users/" + c.path, Body: c.body, Header: header}.Do(f.http)
				return answer, f.store.writes
			})
		})
	}
}

// An empty patch changes nothing, but its precondition is still checked.
func TestIfMatch_holdsForAPatchOfNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	call := apitest.Call{As: apitest.Member, Method: http.MethodPatch, Path: "/api/users/me", Body: `{}`, Header: apitest.IfMatch(`"41"`)}
	call.Do(f.http).Refused(t, http.StatusPreconditionFailed)
	call.Header = apitest.IfMatch(apitest.Tag(apitest.FirstVersion))
	call.Do(f.http).Object(t, http.StatusOK)
}

func TestIfMatch_isIgnoredByAnUndeletion(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	marking(t, f)
	call := apitest.Call{As: apitest.Member, Method: http.MethodPost, Path: "/api/users/me/undelete", Header: apitest.IfMatch(`"41"`)}
	call.Do(f.http).Tagged(t, http.StatusOK, apitest.FirstVersion)
}

// A precondition must not reveal an object's version to an unauthorized caller.
func TestIfMatch_isJudgedAfterTheRight(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	call := apitest.Call{As: apitest.Admin, Method: http.MethodDelete, Path: "/api/users/bob"}
	for _, header := range []http.Header{nil, apitest.IfMatch(`"41"`), apitest.IfMatch("nonsense")} {
		call.Header = header
		call.Do(f.http).Untagged(t, http.StatusForbidden)
	}
}

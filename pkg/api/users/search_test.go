package users_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

func (f *fixture) search(as, q string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodGet, Path: "/api/users?q=" + url.QueryEscape(q)}.Do(f.http)
}

func TestSearch_tellsNamesAndNoMore(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	// Every user may search, because every user may be an Org admin and invite others.
	for _, as := range []string{apitest.Member, apitest.WSMember, apitest.Foreigner, apitest.Operator} {
		answer := f.search(as, "ali")
		answer.Object(t, http.StatusOK)
		require.JSONEq(t, `{"items": [{"name": "alice", "displayName": "Display of alice"}], "continue": ""}`, answer.Body)
	}
	f.search("", "ali").Refused(t, http.StatusUnauthorized)
	answer := f.search(apitest.Member, "nobody")
	answer.Object(t, http.StatusOK)
	require.JSONEq(t, `{"items": [], "continue": ""}`, answer.Body, "an empty list is not null")
	require.Zero(t, f.world.Waits())
}

// Queries of one character or none would list the whole directory in a few requests.
func TestSearch_doesNotReadTheDirectoryOut(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, q := range []string{"", "a", "ü", " ", "   ", " a ", strings.Repeat("a", 129), "\t\n"} {
		f.search(apitest.Member, q).RefusedField(t, "query:q")
	}
	apitest.Call{As: apitest.Member, Method: http.MethodGet, Path: "/api/users"}.Do(f.http).RefusedField(t, "query:q")
	for _, q := range []string{"al", "  al  ", "üü", strings.Repeat("ü", 128)} {
		f.search(apitest.Member, q).Object(t, http.StatusOK)
	}
	for i := range 30 {
		f.world.PutUser(apitest.Person(fmt.Sprintf("many-%02d", i)))
	}
	for _, more := range []string{"", "&limit=500", "&limit="} {
		answer := apitest.Call{As: apitest.Member, Method: http.MethodGet, Path: "/api/users?q=many" + more}.Do(f.http)
		require.Len(t, answer.Items(t, "name"), 20, "there is no next page")
		require.Empty(t, answer.Object(t, http.StatusOK)["continue"])
	}
	limited := func(limit string) apitest.Answer {
		return apitest.Call{As: apitest.Member, Method: http.MethodGet, Path: "/api/users?q=many&limit=" + limit}.Do(f.http)
	}
	require.Equal(t, []string{"many-00", "many-01"}, limited("2").Items(t, "name"))
	for _, limit := range []string{"0", "-1", "501", "x"} {
		limited(limit).RefusedField(t, "query:limit")
	}
	for _, more := range []string{"continue=x", "continue=", "deleted=true"} {
		name, _, _ := strings.Cut(more, "=")
		answer := apitest.Call{As: apitest.Member, Method: http.MethodGet, Path: "/api/users?q=many&" + more}.Do(f.http)
		answer.RefusedField(t, "query:"+name)
	}
}

func TestO8_searchLeavesOutPeopleWhoCannotBeInvited(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	require.Equal(t, []string{"bob"}, f.search(apitest.Admin, "bob").Items(t, "name"))
	f.world.DeleteUser(apitest.Member)
	require.Empty(t, f.search(apitest.Admin, "bob").Items(t, "name"))
	f.search(apitest.Member, "alice").Refused(t, http.StatusForbidden)
}

func TestSearch_aloneIsRateLimited(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.limited = true
	f.search(apitest.Member, "ali").Refused(t, http.StatusTooManyRequests)
	f.get(apitest.Member, "").Object(t, http.StatusOK)
	f.get(apitest.Member, "/memberships").Object(t, http.StatusOK)
}

func TestRegistration_isApprovedByDefault(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for written, shown := range map[v1alpha1.Registration]string{"": "Approved", v1alpha1.RegistrationPending: "Pending", v1alpha1.RegistrationRejected: "Rejected"} {
		u := apitest.Person(apitest.Member)
		u.Spec.Registration = written
		f.world.PutUser(u)
		require.Equal(t, shown, f.get(apitest.Member, "").Object(t, http.StatusOK)["registration"])
	}
}

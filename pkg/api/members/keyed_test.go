package members_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// keyed adds a member with an Idempotency-Key.
func (f *fixture) keyed(as, place, key, body string) apitest.Answer {
	call := apitest.Call{As: as, Method: http.MethodPost, Path: place + "/members", Body: body, Org: apitest.Acme, Header: http.Header{"Idempotency-Key": {key}}}
	if place == inDev {
		call.Workspace = apitest.Dev
	}
	return call.Do(f.http)
}

func TestIdempotencyKey_repeatsTheFirstAnswer(t *testing.T) {
	t.Parallel()
	for _, place := range []string{inOrg, inDev} {
		f := newFixture(t)
		f.keyed(apitest.Admin, place, "k", addFrank).Object(t, http.StatusCreated)
		again := f.keyed(apitest.Admin, place, "k", addFrank).Object(t, http.StatusOK)
		require.Equal(t, "frank", again["user"])
		other := f.keyed(apitest.Admin, place, "k", `{"userRef": {"name": "olga"}, "role": "admin"}`).Object(t, http.StatusOK)
		require.Equal(t, "frank", other["user"])
		require.Equal(t, "member", other["role"])
		f.patch(apitest.Admin, place, "frank", `{"role": "admin"}`).Object(t, http.StatusOK)
		require.Equal(t, "admin", f.keyed(apitest.Admin, place, "k", addFrank).Object(t, http.StatusOK)["role"], "the object as it is now")
		f.add(apitest.Admin, place, addFrank).Refused(t, http.StatusConflict)
		require.Len(t, f.store.writes, 2, "the first, and its change")
	}
}

// The cache of another replica may lag behind kcp, so the hub also asks kcp.
func TestIdempotencyKey_isReadFromKCP(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.keyed(apitest.Admin, inOrg, "k", addFrank).Object(t, http.StatusCreated)
	held := f.store.held["frank"].DeepCopy()
	held.Spec.Role = v1alpha1.RoleAdmin
	held.Status.ObservedGeneration = held.Generation
	f.world.Leave("frank", apitest.Acme, "")
	f.store.show(held)
	require.Equal(t, "admin", f.keyed(apitest.Admin, inOrg, "k", addFrank).Object(t, http.StatusOK)["role"])
}

// A key is valid for one caller and one Org or Workspace.
func TestIdempotencyKey_isPerPersonAndPlace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.keyed(apitest.Admin, inDev, "k", addFrank).Object(t, http.StatusCreated)
	require.Equal(t, "olga", f.keyed(apitest.WSAdmin, inDev, "k", `{"userRef": {"name": "olga"}, "role": "member"}`).Object(t, http.StatusCreated)["user"])
	require.Equal(t, "org", f.keyed(apitest.Admin, inOrg, "k", addFrank).Object(t, http.StatusCreated)["scope"])
	require.Equal(t, "olga", f.keyed(apitest.Admin, inOrg, "l", `{"userRef": {"name": "olga"}, "role": "member"}`).Object(t, http.StatusCreated)["user"])
	f.keyed(apitest.Member, inOrg, "k", addFrank).Refused(t, http.StatusForbidden)
	for _, key := range []string{"", "a b", "ü"} {
		f.keyed(apitest.Admin, inOrg, key, addFrank).RefusedField(t, "header:Idempotency-Key")
	}
}

func TestLocation_leadsToTheNewMember(t *testing.T) {
	t.Parallel()
	for _, place := range []string{inOrg, inDev} {
		for _, prefer := range []string{"", "respond-async"} {
			f := newFixture(t)
			call := apitest.Call{As: apitest.Admin, Method: http.MethodPost, Path: place + "/members", Body: addFrank, Org: apitest.Acme, Header: http.Header{"Prefer": {prefer}}}
			if place == inDev {
				call.Workspace = apitest.Dev
			}
			made := call.Do(f.http)
			require.Equal(t, place+"/members/frank", made.Header.Get("Location"))
			f.add(apitest.Admin, place, addFrank).Object(t, http.StatusOK)
			read := f.do(apitest.Admin, http.MethodGet, made.Header.Get("Location"), "")
			require.Equal(t, "Ready", read.Object(t, http.StatusOK)["phase"])
			for user, code := range map[string]int{"nobody": http.StatusNotFound, apitest.Dev + ".frank": http.StatusNotFound, "FRANK": http.StatusNotFound} {
				f.do(apitest.Admin, http.MethodGet, place+"/members/"+user, "").Refused(t, code)
			}
			f.do(apitest.Operator, http.MethodGet, made.Header.Get("Location"), "").Refused(t, http.StatusForbidden)
		}
	}
}

func TestMember_isReadWithAnETag(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	m := withRights(apitest.WSMember, v1alpha1.RoleMember, true, "view")
	m.ResourceVersion = "7"
	f.world.PutMembership(apitest.Acme, m)
	answer := f.do(apitest.WSAdmin, http.MethodGet, inDev+"/members/"+apitest.WSMember, "")
	answer.Object(t, http.StatusOK)
	require.JSONEq(t, `{"user": "walter", "displayName": "Display of walter", "role": "member", "scope": "workspace", "roles": [{"name": "view"}], "sudo": true, "since": "2026-03-01T12:00:00Z", "phase": "Ready", "active": true, "sources": [{"source": "hand", "role": "member", "sudo": true}]}`, answer.Body)
	require.Equal(t, `"7"`, answer.Header.Get("ETag"))
	require.Zero(t, f.world.Waits())
}

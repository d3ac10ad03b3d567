package admin_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

func TestUser_isThatOfTheList(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	answer := f.get(apitest.Operator, bobsPath)
	answer.Tagged(t, http.StatusOK, apitest.FirstVersion)
	require.JSONEq(t, `{"name": "bob", "displayName": "Display of bob", "email": "bob@example.com", "registration": "Approved",
		"personalOrg": "", "orgQuota": {"limit": 10, "used": 0}, "createdAt": "2026-03-01T12:00:00Z", "phase": "Progressing"}`, answer.Body)
	for _, path := range []string{"users/nobody", "users/me", "users/%2e%2e", "users/nobody/memberships"} {
		f.get(apitest.Operator, path).Refused(t, http.StatusNotFound)
	}
}

func TestMemberships_areThoseOfOneUser(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	at := "users/" + apitest.Mixed + "/memberships"
	require.Equal(t, []string{"member", "admin"}, f.get(apitest.Operator, at).Items(t, "role"), "the organization comes first")
	require.Empty(t, f.get(apitest.Operator, "users/"+apitest.Operator+"/memberships").Items(t, "role"))
	next, ok := f.get(apitest.Operator, at+"?limit=1").Object(t, http.StatusOK)["continue"].(string)
	require.True(t, ok)
	require.Equal(t, []string{apitest.Dev}, f.get(apitest.Operator, at+"?limit=1&continue="+next).Items(t, "workspaceUUID"))
	f.world.DeleteOrg(apitest.Acme)
	f.world.Reindex(apitest.Acme)
	require.Empty(t, f.get(apitest.Operator, at).Items(t, "role"))
	answer := f.get(apitest.Operator, at+"?deleted=true")
	require.Equal(t, []string{"2026-03-31T12:00:00Z", "2026-03-31T12:00:00Z"}, answer.Items(t, "purgeAt"))
	f.get(apitest.Operator, at+"?deleted=yes").RefusedField(t, "query:deleted")
}

func TestOrgs_areFoundByNameAndOwnership(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.world.ChangeOrg(apitest.Globex, func(o *v1alpha1.Organization) { o.Spec.Personal = true })
	f.world.DeleteOrg(apitest.Globex)
	for query, want := range map[string][]string{
		"":                       {"Acme", "Globex"},
		"?personal=":             {"Acme", "Globex"},
		"?personal=true":         {"Globex"},
		"?personal=false":        {"Acme"},
		"?q=GLOB":                {"Globex"},
		"?q=GLOB&personal=false": {},
	} {
		require.Equal(t, want, f.get(apitest.Operator, "orgs"+query).Items(t, "displayName"), query)
	}
	f.get(apitest.Operator, "orgs?personal=yes").RefusedField(t, "query:personal")
	answer := f.get(apitest.Operator, "orgs?personal=true")
	answer.Object(t, http.StatusOK)
	require.JSONEq(t, `{"continue": "", "items": [{"uuid": "`+apitest.Globex+`", "displayName": "Globex", "personal": true, "billing": null,
		"workspaceQuota": {"limit": 50, "used": 1}, "storage": `+hubsLimits+`, "createdAt": "2026-03-01T12:00:00Z", "createdBy": "frank", "phase": "Ready",
		"deletionRequestedAt": "2026-03-01T12:00:00Z", "purgeAt": "2026-03-31T12:00:00Z"}]}`, answer.Body)
}

func TestDeleteOrg_waitsUntilItIsDeactivated(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	answer := f.remove(apitest.Operator, acmesPath).Object(t, http.StatusOK)
	require.Equal(t, "2026-03-01T12:00:00Z", answer["deletionRequestedAt"])
	require.Equal(t, "2026-03-31T12:00:00Z", answer["purgeAt"])
	require.Zero(t, f.world.StillToCome())
	f.get(apitest.Operator, "deletions?q=acme").Items(t, "name")
	f.remove(apitest.Operator, acmesPath).Object(t, http.StatusOK)
	require.Len(t, f.store.patches, 1, "a repetition does not restart the grace period")
	f.remove(apitest.Operator, "orgs/"+apitest.Nowhere).Refused(t, http.StatusNotFound)
	at := apitest.Epoch()
	f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.DeletionTimestamp = &at })
	require.Contains(t, f.remove(apitest.Operator, acmesPath).Refused(t, http.StatusNotFound).Message, "grace")
	f.store.failure = apitest.ErrDown
	f.remove(apitest.Operator, "orgs/"+apitest.Globex).Down(t)
}

func TestDeleteOrg_honoursIfMatch(t *testing.T) {
	t.Parallel()
	apitest.Conditional(t, http.StatusOK, 1, func(t *testing.T, header http.Header, version string) (apitest.Answer, int) {
		f := newFixture(t)
		f.store.version = version
		call := apitest.Call{As: apitest.Operator, Method: http.MethodDelete, Path: "/api/admin/" + acmesPath, Header: header}
		return call.Do(f.http), len(f.store.patches)
	})
}

func TestOrg_isThatOfTheList(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	answer := f.get(apitest.Operator, acmesPath)
	answer.Tagged(t, http.StatusOK, apitest.FirstVersion)
	require.JSONEq(t, `{"uuid": "`+apitest.Acme+`", "displayName": "Acme", "personal": false, "billing": null, "workspaceQuota": {"limit": 50, "used": 3},
		"storage": `+hubsLimits+`, "createdAt": "2026-03-01T12:00:00Z", "createdBy": "alice", "phase": "Ready"}`, answer.Body)
	f.get(apitest.Operator, "orgs/"+apitest.Nowhere).Refused(t, http.StatusNotFound)
}

// A platform admin brings an Organization back of which all admins are gone.
func TestUndeleteOrg_withdrawsTheDeletion(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.remove(apitest.Operator, acmesPath).Object(t, http.StatusOK)
	require.Contains(t, f.get(apitest.Operator, acmesPath).Object(t, http.StatusOK), "purgeAt")
	f.store.active = true
	answer := f.undelete(apitest.Operator, acmesPath).Object(t, http.StatusOK)
	require.NotContains(t, answer, "deletionRequestedAt")
	require.Len(t, f.store.patches, 2)
	// It changes nothing if it is not deleted.
	f.undelete(apitest.Operator, acmesPath).Object(t, http.StatusOK)
	require.Len(t, f.store.patches, 2)
	f.undelete(apitest.Operator, "orgs/"+apitest.Nowhere).Refused(t, http.StatusNotFound)
}

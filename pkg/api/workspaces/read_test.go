package workspaces_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// dev is the complete answer for Dev. One field more or less breaks the API's contract.
const dev = `{
	"uuid": "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa", "orgUUID": "11111111-1111-4111-8111-111111111111",
	"displayName": "Development", "role": "admin",
	"workspacePath": "root:kedge:orgs:11111111-1111-4111-8111-111111111111:aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa",
	"clusterID": "devcluster", "billing": null, "url": "https://hub.example.com:9443/clusters/devcluster",
	"createdAt": "2026-03-01T12:00:00Z", "createdBy": "alice", "phase": "Ready", "conditions": []
}`

func TestWorkspace_hasExactlyItsFields(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	answer := f.get(apitest.WSAdmin, apitest.Dev)
	answer.Object(t, http.StatusOK)
	require.JSONEq(t, dev, answer.Body)

	answer = f.list(apitest.WSAdmin, "")
	answer.Object(t, http.StatusOK)
	require.JSONEq(t, `{"items": [`+dev+`], "continue": ""}`, answer.Body)
	require.Zero(t, f.world.Waits(), "a read waits for nothing")
}

func TestWorkspace_hasNoURLBeforeItIsScheduled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.world.PutWorkspace(apitest.Workspace(apitest.Acme, apitest.Dev, "Development", ""))
	o := f.get(apitest.Admin, apitest.Dev).Object(t, http.StatusOK)
	require.Contains(t, o, "url")
	require.Empty(t, o["url"])
	require.Equal(t, "Progressing", o["phase"])
}

func TestO11_aWorkspaceIsNotReadyAgainstKCP(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	require.Equal(t, "Ready", f.get(apitest.Admin, apitest.Dev).Object(t, http.StatusOK)["phase"])
	ws, _ := f.world.Workspace(apitest.Acme, apitest.Dev)
	ws.KCPReady = false
	ws.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "AsDesired", LastTransitionTime: apitest.Epoch()}}
	f.world.PutWorkspace(ws)
	o := f.get(apitest.Admin, apitest.Dev).Object(t, http.StatusOK)
	require.Equal(t, "Progressing", o["phase"])
	require.Len(t, o["conditions"], 1)
}

func TestWorkspaces_listThoseThatTheCallerCanEnter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		user    string
		shown   bool
		want    []string
		asRoles []string
	}{
		"O-15: an Org admin all of them":                         {apitest.Admin, false, []string{apitest.Dev, apitest.Prod}, []string{"admin", "admin"}},
		"an Org member none":                                     {apitest.Member, false, []string{}, []string{}},
		"an Org member all, where the Org lets them look":        {apitest.Member, true, []string{apitest.Dev, apitest.Prod}, []string{"viewer", "viewer"}},
		"an Org member with a row":                               {apitest.Mixed, false, []string{apitest.Dev}, []string{"admin"}},
		"an Org member with a row, where the Org lets them look": {apitest.Mixed, true, []string{apitest.Dev, apitest.Prod}, []string{"admin", "viewer"}},
		"a Workspace's admin":                                    {apitest.WSAdmin, false, []string{apitest.Dev}, []string{"admin"}},
		"a Workspace's member, who is no member of the Org":      {apitest.WSMember, true, []string{apitest.Dev}, []string{"member"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			if c.shown {
				show(f)
			}
			answer := f.list(c.user, "")
			require.Equal(t, c.want, answer.Items(t, "uuid"))
			require.Equal(t, c.asRoles, answer.Items(t, "role"))
		})
	}
}

func TestWorkspaces_leaveOutTheDeleted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	require.NotContains(t, f.list(apitest.Admin, "").Items(t, "uuid"), apitest.Gone)
	f.get(apitest.Admin, apitest.Gone).Refused(t, http.StatusNotFound)
	ws, _ := f.world.Workspace(apitest.Acme, apitest.Gone)
	ws.DeletionRequestedAt = nil
	f.world.PutWorkspace(ws)
	require.Contains(t, f.list(apitest.Admin, "").Items(t, "uuid"), apitest.Gone)
	f.get(apitest.Admin, apitest.Gone).Object(t, http.StatusOK)
	ws.Terminating = true
	f.world.PutWorkspace(ws)
	require.NotContains(t, f.list(apitest.Admin, "").Items(t, "uuid"), apitest.Gone)
}

// An Org admin need not be in a Workspace to bring it back. A row with less, and default access, take nothing from that.
func TestO13_theDeletedAreListedToThoseWhoUndeleteThemOrWereInThem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		user  string
		row   v1alpha1.Role
		want  []string
		roles []string
	}{
		"an Org admin without a row":           {apitest.Admin, "", []string{apitest.Gone}, []string{"admin"}},
		"an Org admin with a row of a member":  {apitest.Admin, v1alpha1.RoleMember, []string{apitest.Gone}, []string{"admin"}},
		"an admin of the Workspace":            {apitest.WSAdmin, v1alpha1.RoleAdmin, []string{apitest.Gone}, []string{"admin"}},
		"a member of the Workspace":            {apitest.WSMember, v1alpha1.RoleMember, []string{apitest.Gone}, []string{"member"}},
		"an Org member, who may look into all": {apitest.Member, "", []string{}, []string{}},
		"an admin of another Workspace":        {apitest.WSAdmin, "", []string{}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			show(f)
			if c.row != "" {
				f.world.Join(c.user, apitest.Acme, apitest.Gone, c.row)
			}
			answer := f.list(c.user, "?deleted=true")
			require.Equal(t, c.want, answer.Items(t, "uuid"))
			require.Equal(t, c.roles, answer.Items(t, "role"))
			if len(c.want) > 0 {
				require.Equal(t, []string{"2026-03-01T12:00:00Z"}, answer.Items(t, "deletionRequestedAt"))
				require.Equal(t, []string{"2026-03-31T12:00:00Z"}, answer.Items(t, "purgeAt"))
			}
			for _, query := range []string{"", "?deleted=", "?deleted=false"} {
				require.NotContains(t, f.list(c.user, query).Items(t, "uuid"), apitest.Gone)
			}
			require.Zero(t, f.world.Waits())
		})
	}
}

func TestO13_theListOfTheDeletedIsNoWayAround(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.list(apitest.Admin, "?deleted=yes").RefusedField(t, "query:deleted")
	f.list(apitest.Admin, "?deleted=true&deleted=false").RefusedField(t, "query:deleted")
	for _, user := range []string{apitest.Foreigner, apitest.Operator} {
		f.list(user, "?deleted=true").Refused(t, http.StatusForbidden)
	}
	f.list("", "?deleted=true").Refused(t, http.StatusUnauthorized)
	ws, _ := f.world.Workspace(apitest.Acme, apitest.Gone)
	ws.Terminating = true
	f.world.PutWorkspace(ws)
	require.Empty(t, f.list(apitest.Admin, "?deleted=true").Items(t, "uuid"), "what is being removed does not come back")
	f.world.DeleteOrg(apitest.Acme)
	f.list(apitest.Admin, "?deleted=true").Refused(t, http.StatusNotFound)
}

func TestO1_workspacesAreSortedByDisplayNameAndUUID(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const second = "00000000-0000-4000-8000-000000000000"
	f.world.PutWorkspace(apitest.Workspace(apitest.Acme, second, "Development", "secondcluster"))
	require.Equal(t, []string{second, apitest.Dev, apitest.Prod}, f.list(apitest.Admin, "").Items(t, "uuid"))
	require.Equal(t, []string{apitest.Prod}, f.list(apitest.Admin, "?q=duct").Items(t, "uuid"))
	first := f.list(apitest.Admin, "?limit=1")
	require.Equal(t, []string{second}, first.Items(t, "uuid"))
	token, _ := first.Object(t, http.StatusOK)["continue"].(string)
	require.Equal(t, []string{apitest.Dev, apitest.Prod}, f.list(apitest.Admin, "?continue="+token).Items(t, "uuid"))
	f.list(apitest.Admin, "?limit=0").RefusedField(t, "query:limit")
}

func TestWorkspace_needsARoleInIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, user := range []string{apitest.Admin, apitest.Mixed, apitest.WSAdmin, apitest.WSMember} {
		f.get(user, apitest.Dev).Object(t, http.StatusOK)
	}
	missing := f.get(apitest.Admin, apitest.Nowhere)
	missing.Refused(t, http.StatusForbidden)
	for _, user := range []string{apitest.Member, apitest.Foreigner, apitest.Operator} {
		foreign := f.get(user, apitest.Dev)
		foreign.Refused(t, http.StatusForbidden)
		require.Equal(t, missing.Body, foreign.Body, "what is foreign and what is missing look the same")
	}
	for _, user := range []string{apitest.Mixed, apitest.WSAdmin, apitest.WSMember} {
		f.get(user, apitest.Prod).Refused(t, http.StatusForbidden)
	}
	show(f)
	require.Equal(t, "viewer", f.get(apitest.Member, apitest.Dev).Object(t, http.StatusOK)["role"])
	f.get("", apitest.Dev).Refused(t, http.StatusUnauthorized)
}

func TestWorkspace_isNotReachedThroughAnotherOrg(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.get(apitest.Admin, apitest.Lab).Refused(t, http.StatusForbidden)
	f.get(apitest.Foreigner, apitest.Lab).Refused(t, http.StatusForbidden)
	own := apitest.Call{
		As: apitest.Foreigner, Method: http.MethodGet, Path: "/api/orgs/" + apitest.Globex + "/workspaces/" + apitest.Lab,
		Org: apitest.Globex, Workspace: apitest.Lab,
	}
	own.Do(f.http).Object(t, http.StatusOK)
}

func TestWorkspaces_ofAForeignOrgAreNotListed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	call := apitest.Call{As: apitest.Foreigner, Method: http.MethodGet, Path: "/api/orgs/" + apitest.Nowhere + "/workspaces", Org: apitest.Nowhere}
	missing := call.Do(f.http)
	missing.Refused(t, http.StatusForbidden)
	for _, user := range []string{apitest.Foreigner, apitest.Operator} {
		require.Equal(t, missing.Body, f.list(user, "").Body)
	}
	f.list("", "").Refused(t, http.StatusUnauthorized)
	f.list(apitest.Admin, "").Object(t, http.StatusOK)
}

func TestO2_tenantHeadersAreRequired(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, c := range []struct{ method, path, org, workspace, field string }{
		{http.MethodGet, path(), "", "", "header:X-Kedge-Org"},
		{http.MethodPost, path(), apitest.Globex, "", "header:X-Kedge-Org"},
		{http.MethodGet, path(apitest.Dev), "", apitest.Dev, "header:X-Kedge-Org"},
		{http.MethodGet, path(apitest.Dev), apitest.Acme, "", "header:X-Kedge-Workspace"},
		{http.MethodPatch, path(apitest.Dev), apitest.Acme, apitest.Prod, "header:X-Kedge-Workspace"},
	} {
		call := apitest.Call{As: apitest.Admin, Method: c.method, Path: c.path, Org: c.org, Workspace: c.workspace, Body: `{"displayName": "New"}`}
		call.Do(f.http).RefusedField(t, c.field)
	}
	require.Zero(t, f.store.writes)
	f.get(apitest.Admin, apitest.Dev).Object(t, http.StatusOK)
}

func TestWorkspace_showsWhenItWillBePurged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	// The Workspace is soft-deleted between the check and the write.
	patch, at := f.store.patch, apitest.Epoch()
	f.store.patch = deletedAt(patch, at)
	o := f.patch(apitest.Admin, `{"displayName": "New"}`).Object(t, http.StatusOK)
	require.Equal(t, "2026-03-01T12:00:00Z", o["deletionRequestedAt"])
	require.Equal(t, "2026-03-31T12:00:00Z", o["purgeAt"])
	require.Equal(t, string(v1alpha1.RoleAdmin), o["role"])
}

package workspaces_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/workspaces"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

type patchFunc func(ctx context.Context, orgCluster, org, workspace string, patch any) (tenancy.Workspace, error)

func deletedAt(patch patchFunc, at metav1.Time) patchFunc {
	return func(ctx context.Context, orgCluster, org, workspace string, p any) (tenancy.Workspace, error) {
		ws, err := patch(ctx, orgCluster, org, workspace, p)
		ws.DeletionRequestedAt = &at
		return ws, err
	}
}

func TestCreate_writesOnceAndWaitsUntilItsCreatorCanEnter(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	create := f.store.create
	f.store.create = func(ctx context.Context, org string, w tenancy.Workspace) (tenancy.Workspace, error) {
		require.Equal(t, apitest.Acme, org)
		require.Equal(t, []string{made, apitest.Acme, "Staging", "What\nfor", apitest.Member}, []string{w.UUID, w.OrgUUID, w.DisplayName, w.Description, w.CreatedBy})
		return create(ctx, org, w)
	}
	answer := f.post(apitest.Member, `{"displayName": "Staging", "description": "What\nfor"}`)
	answer.Object(t, http.StatusCreated)
	require.JSONEq(t, `{
		"uuid": "eeeeeeee-eeee-4eee-8eee-eeeeeeeeeeee", "orgUUID": "11111111-1111-4111-8111-111111111111",
		"displayName": "Staging", "description": "What\nfor", "role": "admin",
		"workspacePath": "root:kedge:orgs:11111111-1111-4111-8111-111111111111:eeeeeeee-eeee-4eee-8eee-eeeeeeeeeeee",
		"clusterID": "madecluster", "billing": null, "url": "https://hub.example.com:9443/clusters/madecluster",
		"createdAt": "2026-03-01T12:00:00Z", "createdBy": "bob", "phase": "Ready", "conditions": []
	}`, answer.Body)
	require.Equal(t, path(made), answer.Header.Get("Location"))
	require.Zero(t, f.world.StillToCome(), "it waited for Ready and for the index")
	require.Equal(t, 1, f.store.writes)

	// Reads after the answer return the new Workspace.
	require.Equal(t, []string{made}, f.list(apitest.Member, "").Items(t, "uuid"))
	require.JSONEq(t, answer.Body, f.get(apitest.Member, made).Body)
}

func TestCreate_answers202AtTheTimeout(t *testing.T) {
	t.Parallel()
	placed := apitest.Workspace(apitest.Acme, made, "Staging", "madecluster")
	unfinished := placed
	unfinished.Status.Phase = v1alpha1.PhaseProgressing
	join := func(w *apitest.World) { w.Join(apitest.Admin, apitest.Acme, made, v1alpha1.RoleAdmin) }
	for name, c := range map[string]struct {
		views []func(*apitest.World)
		phase string
	}{
		"no view has it":                {nil, "Progressing"},
		"it is not Ready":               {[]func(*apitest.World){func(w *apitest.World) { w.PutWorkspace(unfinished) }, join}, "Progressing"},
		"its creator has no row of it":  {[]func(*apitest.World){func(w *apitest.World) { w.PutWorkspace(placed) }}, "Ready"},
		"the row is from before placed": {[]func(*apitest.World){func(w *apitest.World) { w.PutWorkspace(apitest.Workspace(apitest.Acme, made, "Staging", "")) }, join, func(w *apitest.World) { w.PutWorkspace(placed) }}, "Ready"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(h *workspaces.Handler) { h.CreateTimeout = time.Millisecond })
			f.store.create = func(context.Context, string, tenancy.Workspace) (tenancy.Workspace, error) {
				f.world.Later(c.views...)
				return apitest.Workspace(apitest.Acme, made, "Staging", ""), nil
			}
			answer := f.post(apitest.Admin, `{"displayName": "Staging"}`)
			require.Equal(t, c.phase, answer.Object(t, http.StatusAccepted)["phase"])
			f.requireReadable(t, answer.Object(t, http.StatusAccepted))
			require.Equal(t, path(made), answer.Header.Get("Location"))
			// What else they ask of it is refused with its phase until kcp has it, and others learn nothing.
			change := func(as string) apitest.Answer {
				return apitest.Call{As: as, Method: http.MethodPatch, Path: path(made), Org: apitest.Acme, Workspace: made, Body: `{"displayName": "Newer"}`}.Do(f.http)
			}
			change(apitest.Member).Refused(t, http.StatusForbidden)
			if c.views == nil {
				early := change(apitest.Admin)
				early.Refused(t, http.StatusConflict)
				require.Contains(t, early.Body, "is not ready for you yet, its phase is Progressing")
			}
		})
	}
}

func TestCreate_doesNotWaitWithRespondAsync(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	call := apitest.Call{
		As: apitest.Admin, Method: http.MethodPost, Path: path(), Org: apitest.Acme, Body: `{"displayName": "Staging"}`,
		Header: http.Header{"Prefer": {"respond-async"}},
	}
	answer := call.Do(f.http)
	require.Equal(t, "Progressing", answer.Object(t, http.StatusAccepted)["phase"])
	require.Equal(t, path(made), answer.Header.Get("Location"))
	require.Equal(t, 4, f.world.StillToCome(), "it waited for the claim alone")
	f.requireReadable(t, answer.Object(t, http.StatusAccepted))

	call.Header = nil
	call.Do(newFixture(t).http).Object(t, http.StatusCreated)
}

func TestO7_workspaceCreationSaysWhoCanCreate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		user    string
		who     v1alpha1.Who
		allowed bool
	}{
		{apitest.Admin, v1alpha1.WhoMembers, true},
		{apitest.Admin, v1alpha1.WhoAdmin, true},
		{apitest.Member, v1alpha1.WhoMembers, true},
		{apitest.Member, v1alpha1.WhoAdmin, false},
		// O-15: a Workspace admin has no additional right in the Org.
		{apitest.Mixed, v1alpha1.WhoMembers, true},
		{apitest.Mixed, v1alpha1.WhoAdmin, false},
		{apitest.WSAdmin, v1alpha1.WhoMembers, false},
		{apitest.WSMember, v1alpha1.WhoMembers, false},
		{apitest.Foreigner, v1alpha1.WhoMembers, false},
		{apitest.Operator, v1alpha1.WhoMembers, false},
	} {
		t.Run(c.user+" where "+string(c.who)+" may", func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.Spec.WorkspaceCreation = c.who })
			answer := f.post(c.user, `{"displayName": "Staging"}`)
			if c.allowed {
				answer.Object(t, http.StatusCreated)
				return
			}
			answer.Refused(t, http.StatusForbidden)
			require.Zero(t, f.store.writes)
		})
	}
}

func TestO15_aWorkspaceRoleIsNoOrgRole(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	foreign := f.post(apitest.Foreigner, `{"displayName": "Staging"}`)
	foreign.Refused(t, http.StatusForbidden)
	for _, user := range []string{apitest.WSAdmin, apitest.WSMember} {
		require.Equal(t, foreign.Body, f.post(user, `{"displayName": "Staging"}`).Body, user)
		f.list(user, "").Object(t, http.StatusOK)
	}
	require.Zero(t, f.store.writes)
	f.post(apitest.Member, `{"displayName": "Staging"}`).Object(t, http.StatusCreated)
}

func TestO6_refusesAWorkspaceOverTheQuota(t *testing.T) {
	t.Parallel()
	// Acme has three Workspaces. One of them is soft-deleted.
	for name, c := range map[string]struct {
		quota   int
		own     int32
		refused bool
	}{
		"below the default":                    {4, 0, false},
		"at the default, the deleted included": {3, 0, true},
		"a default of none":                    {0, 0, true},
		"its own quota is above the other":     {3, 4, false},
		"its own quota is below the other":     {50, 3, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(h *workspaces.Handler) { h.DefaultWorkspaceQuota = c.quota })
			f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.Spec.WorkspaceQuota = c.own })
			answer := f.post(apitest.Admin, `{"displayName": "One more"}`)
			if !c.refused {
				answer.Object(t, http.StatusCreated)
				return
			}
			status := answer.RefusedCause(t, "QuotaExceeded")
			require.Contains(t, status.Message, "has 3 of at most")
			require.Contains(t, status.Message, "ask a platform admin")
			require.Zero(t, f.store.writes)
		})
	}
}

func TestCreate_isRetryableInAnOrgThatIsNotReady(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.world.PutOrg(apitest.Organization(apitest.Acme, "Acme", apitest.Admin), "")
	answer := f.post(apitest.Admin, `{"displayName": "Staging"}`)
	answer.Refused(t, http.StatusServiceUnavailable)
	require.Equal(t, "1", answer.Header.Get("Retry-After"))
	require.Zero(t, f.store.writes)
	f.world.PutOrg(apitest.Organization(apitest.Acme, "Acme", apitest.Admin), "acmecluster")
	f.post(apitest.Admin, `{"displayName": "Staging"}`).Object(t, http.StatusCreated)
}

func TestDisplayName_refusesBadOnes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for body, field := range map[string]string{
		`{"displayName": ""}`:                     "displayName",
		`{"displayName": null}`:                   "displayName",
		`{"displayName": 7}`:                      "displayName",
		`{"displayName": "a", "description": []}`: "description",
		`{"displayName": "a", "description": "` + strings.Repeat("ä", 1025) + `"}`: "description",
		`{"displayName": "a", "description": "a\u202eb"}`:                          "description",
		`{"displayName": "a\tb"}`:                                                  "displayName",
		`{"displayName": "e\u0301"}`:                                               "displayName",
		`{"displayName": "a", "clusterID": "b"}`:                                   "clusterID",
		`{"displayName": "a", "role": "admin"}`:                                    "role",
		`{"displayName": "a", "displayName": ""}`:                                  "displayName",
		`{"displayName": "` + strings.Repeat("a", 129) + `"}`:                      "displayName",
	} {
		f.post(apitest.Admin, body).RefusedField(t, field)
		f.patch(apitest.Admin, body).RefusedField(t, field)
	}
	f.post(apitest.Admin, `{}`).RefusedField(t, "displayName")
	require.Zero(t, f.store.writes)
	body := `{"displayName": "` + strings.Repeat("ä", 128) + `"}`
	f.patch(apitest.Admin, body).Object(t, http.StatusOK)
	f.post(apitest.Admin, body).Object(t, http.StatusCreated)
}

func TestPatch_writesNothingWhenNothingIsGiven(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	answer := f.patch(apitest.WSAdmin, `{}`)
	answer.Object(t, http.StatusOK)
	require.JSONEq(t, dev, answer.Body)
	require.Zero(t, f.store.writes)
}

func TestO1_aRenamedWorkspaceHasItsNewNameAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	answer := f.patch(apitest.WSAdmin, `{"displayName": "Renamed"}`)
	after := answer.Object(t, http.StatusOK)
	require.Zero(t, f.world.StillToCome(), "it waited for the view and for the caller's index")
	require.JSONEq(t, strings.Replace(dev, "Development", "Renamed", 1), answer.Body, "nothing but the name has changed")
	require.Equal(t, after, f.get(apitest.WSAdmin, apitest.Dev).Object(t, http.StatusOK))
	require.Equal(t, "Renamed", f.world.Index(apitest.WSAdmin)[0].WorkspaceDisplayName)
}

func TestPatch_waitsForNoIndexEntryOfAnOrgAdmin(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.patch(apitest.Admin, `{"displayName": "Renamed"}`).Object(t, http.StatusOK)
	require.Equal(t, 1, f.world.StillToCome(), "the index of somebody else")
	require.Contains(t, f.list(apitest.Admin, "").Items(t, "displayName"), "Renamed")
}

func TestO15_aWorkspaceIsChangedByItsAndTheOrgsAdmins(t *testing.T) {
	t.Parallel()
	for user, allowed := range map[string]bool{
		apitest.Admin: true, apitest.WSAdmin: true, apitest.Mixed: true,
		apitest.WSMember: false, apitest.Member: false, apitest.Foreigner: false, apitest.Operator: false,
	} {
		f := newFixture(t)
		f.store.patch = func(_ context.Context, orgCluster, org, workspace string, patch any) (tenancy.Workspace, error) {
			require.Equal(t, []string{"acmecluster", apitest.Acme, apitest.Dev}, []string{orgCluster, org, workspace})
			ws, _ := f.world.Workspace(org, workspace)
			ws.DisplayName = renamed(t, patch)
			f.world.PutWorkspace(ws)
			f.world.Join(user, org, workspace, v1alpha1.RoleAdmin)
			return ws, nil
		}
		// defaultAccess gives Org members read access only.
		show(f)
		answer := f.patch(user, `{"displayName": "Mine"}`)
		if allowed {
			answer.Object(t, http.StatusOK)
			continue
		}
		answer.Refused(t, http.StatusForbidden)
		require.Zero(t, f.store.writes, user)
	}
}

func TestWrite_goesThroughWhenTheClientLeaves(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	outlives := func(write context.Context) {
		require.NoError(t, write.Err(), "the write does not end with the request")
		_, bounded := write.Deadline()
		require.True(t, bounded)
	}
	ctx, leave := context.WithCancel(t.Context())
	f.store.create = func(write context.Context, _ string, w tenancy.Workspace) (tenancy.Workspace, error) {
		leave()
		outlives(write)
		return w, nil
	}
	apitest.Call{As: apitest.Admin, Method: http.MethodPost, Path: path(), Org: apitest.Acme, Body: `{"displayName": "New"}`, Context: ctx}.Do(f.http)

	ctx, leave = context.WithCancel(t.Context())
	f.store.patch = func(write context.Context, _, org, workspace string, patch any) (tenancy.Workspace, error) {
		leave()
		outlives(write)
		return apitest.Workspace(org, workspace, renamed(t, patch), "devcluster"), nil
	}
	call := apitest.Call{
		As: apitest.Admin, Method: http.MethodPatch, Path: path(apitest.Dev), Org: apitest.Acme, Workspace: apitest.Dev,
		Body: `{"displayName": "New"}`, Context: ctx,
	}
	require.Equal(t, "New", call.Do(f.http).Object(t, http.StatusOK)["displayName"])
	require.Equal(t, 2, f.store.writes)
}

func TestWrite_answersAFailureWithoutWaiting(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	down := errs.Wrap(errs.Unavailable, context.DeadlineExceeded, "kcp cannot be reached")
	f.store.create = func(context.Context, string, tenancy.Workspace) (tenancy.Workspace, error) {
		return tenancy.Workspace{}, down
	}
	f.store.patch = func(context.Context, string, string, string, any) (tenancy.Workspace, error) {
		return tenancy.Workspace{}, down
	}
	for _, answer := range []apitest.Answer{
		f.post(apitest.Admin, `{"displayName": "New"}`), f.patch(apitest.Admin, `{"displayName": "New"}`),
	} {
		answer.Refused(t, http.StatusServiceUnavailable)
		require.NotContains(t, answer.Body, context.DeadlineExceeded.Error())
	}
	require.Zero(t, f.world.Waits())
}

// requireReadable requires that the creator reads an accepted Workspace and finds it in
// the list. Other members of the Org do not.
func (f *fixture) requireReadable(t *testing.T, accepted map[string]any) {
	t.Helper()
	read := apitest.Call{As: apitest.Admin, Method: http.MethodGet, Path: path(made), Org: apitest.Acme, Workspace: made}
	require.Equal(t, accepted, read.Do(f.http).Object(t, http.StatusOK))
	require.Contains(t, f.list(apitest.Admin, "").Items(t, "uuid"), made)
	for _, other := range []string{apitest.Member, apitest.WSAdmin, apitest.Foreigner} {
		read.As = other
		read.Do(f.http).Refused(t, http.StatusForbidden)
	}
	require.NotContains(t, f.list(apitest.Member, "").Items(t, "uuid"), made)
}

// The creator may read the Workspace before the index has the creator's Membership, but
// not after its removal.
func TestRead_aMemberReadsTheWorkspaceTheyCreate(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	create := apitest.Call{
		As: apitest.Member, Method: http.MethodPost, Path: path(), Org: apitest.Acme, Body: `{"displayName": "Staging"}`,
		Header: http.Header{"Prefer": {"respond-async"}},
	}
	accepted := create.Do(f.http).Object(t, http.StatusAccepted)
	read := apitest.Call{As: apitest.Member, Method: http.MethodGet, Path: path(made), Org: apitest.Acme, Workspace: made}
	require.Equal(t, accepted, read.Do(f.http).Object(t, http.StatusOK))
	require.Equal(t, []string{made}, f.list(apitest.Member, "").Items(t, "uuid"))

	ws := apitest.Workspace(apitest.Acme, made, "Staging", "madecluster")
	ws.CreatedBy = apitest.Member
	f.world.PutWorkspace(ws)
	read.Do(f.http).Object(t, http.StatusOK)
	ws.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionFirstAdmin, Status: metav1.ConditionTrue}}
	f.world.PutWorkspace(ws)
	f.world.Join(apitest.Member, apitest.Acme, made, v1alpha1.RoleAdmin)
	f.world.Unindex(apitest.Member)
	read.Do(f.http).Refused(t, http.StatusForbidden)
	f.world.Join(apitest.Member, apitest.Acme, "", v1alpha1.RoleMember)
	read.Do(f.http).Object(t, http.StatusOK)
	f.world.Leave(apitest.Member, apitest.Acme, made)
	read.Do(f.http).Refused(t, http.StatusForbidden)
	require.Empty(t, f.list(apitest.Member, "").Items(t, "uuid"))
}

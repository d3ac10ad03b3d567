package orgs_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/orgs"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

func TestCreate_writesOnceAndWaitsUntilItsCreatorSeesIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var written *v1alpha1.Organization
	create := f.store.create
	f.store.create = func(ctx context.Context, o *v1alpha1.Organization) (*v1alpha1.Organization, error) {
		written = o
		return create(ctx, o)
	}
	answer := f.post(apitest.Operator, `{"displayName": "Ünïted ☂ <b>", "description": "What\nfor"}`)
	answer.Object(t, http.StatusCreated)
	require.JSONEq(t, `{
		"uuid": "33333333-3333-4333-8333-333333333333", "displayName": "Ünïted ☂ <b>", "description": "What\nfor", "personal": false, "role": "admin",
		"workspacePath": "root:kedge:orgs:33333333-3333-4333-8333-333333333333",
		"workspaceCreation": "members", "catalogEntryCreation": "members", "defaultAccess": "none", "billing": null,
		"workspaceQuota": {"limit": 50, "used": 0},
		"createdAt": "2026-03-01T12:00:00Z", "createdBy": "olga", "firstAdmin": "olga",
		"phase": "Ready", "conditions": []
	}`, answer.Body)
	require.Equal(t, "/api/orgs/"+made, answer.Header.Get("Location"))
	require.Zero(t, f.world.StillToCome(), "it waited for Ready and for the index")
	require.Equal(t, 1, f.store.writes)

	require.Equal(t, made, written.Name)
	require.Equal(t, map[string]string{v1alpha1.CreatedByAnnotation: apitest.Operator}, written.Annotations)
	require.Equal(t, v1alpha1.OrganizationSpec{
		DisplayName: "Ünïted ☂ <b>", Description: "What\nfor", WorkspaceCreation: v1alpha1.WhoMembers, CatalogEntryCreation: v1alpha1.WhoMembers,
		DefaultAccess: v1alpha1.DefaultAccessNone,
	}, written.Spec)

	// Reads after the answer return the new Org.
	require.Equal(t, []string{made}, f.get(apitest.Operator, "/api/orgs").Items(t, "uuid"))
}

func TestCreate_answers202AtTheTimeout(t *testing.T) {
	t.Parallel()
	for name, views := range map[string][]func(*apitest.World){
		"no view has it": nil,
		"it is not Ready": {func(w *apitest.World) {
			o := apitest.Organization(made, "New", apitest.Admin)
			o.Status.Phase = v1alpha1.PhaseProgressing
			w.PutOrg(o, "")
			w.Join(apitest.Admin, made, "", v1alpha1.RoleAdmin)
		}},
		"its creator has no row of it": {func(w *apitest.World) {
			w.PutOrg(apitest.Organization(made, "New", apitest.Admin), "madecluster")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, hurried)
			f.store.create = func(_ context.Context, o *v1alpha1.Organization) (*v1alpha1.Organization, error) {
				f.world.Later(views...)
				return o, nil
			}
			answer := f.post(apitest.Admin, `{"displayName": "New"}`)
			o := answer.Object(t, http.StatusAccepted)
			require.Equal(t, made, o["uuid"])
			require.Equal(t, "alice", o["firstAdmin"])
			require.Equal(t, "/api/orgs/"+made, answer.Header.Get("Location"))
			f.requireReadable(t, o)
			if name != "its creator has no row of it" {
				require.Equal(t, "Progressing", o["phase"])
			}
			// What else they ask of it is refused with its phase until they have a row, and strangers learn nothing.
			change := func(as string) apitest.Answer {
				return apitest.Call{As: as, Method: http.MethodPatch, Path: "/api/orgs/" + made, Org: made, Body: `{"displayName": "Newer"}`}.Do(f.http)
			}
			change(apitest.Foreigner).Refused(t, http.StatusForbidden)
			if name != "it is not Ready" {
				early := change(apitest.Admin)
				early.Refused(t, http.StatusConflict)
				require.Contains(t, early.Body, "is not ready for you yet, its phase is "+o["phase"].(string))
			}
		})
	}
}

func TestCreate_doesNotWaitWithRespondAsync(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	call := apitest.Call{
		As: apitest.Admin, Method: http.MethodPost, Path: "/api/orgs", Body: `{"displayName": "New"}`,
		Header: http.Header{"Prefer": {"respond-async"}},
	}
	answer := call.Do(f.http)
	require.Equal(t, "Progressing", answer.Object(t, http.StatusAccepted)["phase"])
	require.Equal(t, "/api/orgs/"+made, answer.Header.Get("Location"))
	f.requireReadable(t, answer.Object(t, http.StatusAccepted))
	require.Equal(t, 3, f.world.StillToCome(), "it waited for the claim alone")

	f = newFixture(t)
	call.Header = http.Header{"Prefer": {"return=minimal"}}
	call.Do(f.http).Object(t, http.StatusCreated)
}

func TestO5_refusesAnOrgOverTheQuota(t *testing.T) {
	t.Parallel()
	personal := func(f *fixture) {
		o := apitest.Organization(apitest.Nowhere, "Alice's own", apitest.Admin)
		o.Spec.Personal = true
		f.world.PutOrg(o, "personalcluster")
	}
	deleted := func(f *fixture) {
		f.world.DeleteOrg(apitest.Acme)
	}
	own := func(n int32) func(*fixture) {
		return func(f *fixture) {
			u := apitest.Person(apitest.Admin)
			u.Spec.OrgQuota = n
			f.world.PutUser(u)
		}
	}
	// Alice has created one Org: Acme.
	for name, c := range map[string]struct {
		quota   int
		arrange func(*fixture)
		refused bool
	}{
		"below the default":                   {2, func(*fixture) {}, false},
		"at the default":                      {1, func(*fixture) {}, true},
		"a default of none":                   {0, func(*fixture) {}, true},
		"a personal Org does not count":       {2, personal, false},
		"a soft-deleted one does":             {1, deleted, true},
		"their own quota is above the other":  {1, own(2), false},
		"their own quota is below the other":  {10, own(1), true},
		"an Org that somebody else made does": {2, func(f *fixture) { f.world.Join(apitest.Admin, apitest.Globex, "", v1alpha1.RoleAdmin) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(h *orgs.Handler) { h.DefaultOrgQuota = c.quota })
			c.arrange(f)
			answer := f.post(apitest.Admin, `{"displayName": "One more"}`)
			if !c.refused {
				answer.Object(t, http.StatusCreated)
				return
			}
			status := answer.RefusedCause(t, "QuotaExceeded")
			require.Contains(t, status.Message, "ask a platform admin")
			require.Contains(t, status.Message, "created 1 of at most")
			require.Zero(t, f.store.writes)
		})
	}
}

func TestCreate_refusesBadBodies(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for body, field := range map[string]string{
		`{}`:                                                      "displayName",
		`{"displayName": ""}`:                                     "displayName",
		`{"displayName": "  "}`:                                   "displayName",
		`{"displayName": null}`:                                   "displayName",
		`{"displayName": 7}`:                                      "displayName",
		`{"displayName": "a\u0000b"}`:                             "displayName",
		`{"displayName": "e\u0301"}`:                              "displayName",
		`{"displayName": "a\u202eb"}`:                             "displayName",
		`{"displayName":"a","uuid":"b"}`:                          "uuid",
		`{"displayName":"a","name":"b"}`:                          "name",
		`{"DisplayName":"a"}`:                                     "DisplayName",
		`{"displayName":"` + strings.Repeat("ä", 129) + `"}`:      "displayName",
		`{"displayName":"a","displayName":"b"}`:                   "displayName",
		`{"displayName":"a","personal":true}`:                     "personal",
		`{"displayName":"a","workspaceQuota":99}`:                 "workspaceQuota",
		`{"displayName":"a","createdBy":"` + apitest.Admin + `"}`: "createdBy",
	} {
		answer := f.post(apitest.Admin, body)
		answer.RefusedField(t, field)
		require.NotContains(t, answer.Body, "orgs.", "no Go type")
	}
	for _, body := range []string{`[]`, `"a"`, `{"displayName":"a"}{}`, `{`, "{\"displayName\":\"\xff\"}"} {
		f.post(apitest.Admin, body).Refused(t, http.StatusBadRequest)
	}
	plain := apitest.Call{As: apitest.Admin, Method: http.MethodPost, Path: "/api/orgs", Body: `{"displayName":"a"}`, ContentType: "text/plain"}
	plain.Do(f.http).Refused(t, http.StatusUnsupportedMediaType)
	f.post(apitest.Admin, `{"displayName":"`+strings.Repeat("a", 64<<10)+`"}`).Refused(t, http.StatusRequestEntityTooLarge)
	require.Zero(t, f.store.writes)

	f.post(apitest.Admin, `{"displayName":"`+strings.Repeat("ä", 128)+`"}`).Object(t, http.StatusCreated)
}

func TestCreate_goesThroughWhenTheClientLeaves(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx, leave := context.WithCancel(t.Context())
	create := f.store.create
	f.store.create = func(write context.Context, o *v1alpha1.Organization) (*v1alpha1.Organization, error) {
		leave()
		require.NoError(t, write.Err(), "the write does not end with the request")
		_, bounded := write.Deadline()
		require.True(t, bounded)
		return create(write, o)
	}
	apitest.Call{As: apitest.Admin, Method: http.MethodPost, Path: "/api/orgs", Body: `{"displayName": "New"}`, Context: ctx}.Do(f.http)
	require.Equal(t, 1, f.store.writes)
}

func TestCreate_tellsWhenKCPIsDown(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.store.create = func(context.Context, *v1alpha1.Organization) (*v1alpha1.Organization, error) {
		return nil, errs.Wrap(errs.Unavailable, context.DeadlineExceeded, "kcp cannot be reached")
	}
	answer := f.post(apitest.Admin, `{"displayName": "New"}`)
	answer.Refused(t, http.StatusServiceUnavailable)
	require.NotContains(t, answer.Body, context.DeadlineExceeded.Error())
	require.Zero(t, f.world.Waits())
}

// requireReadable requires that the creator reads an accepted Org and finds it in the
// list. Other users do not.
func (f *fixture) requireReadable(t *testing.T, accepted map[string]any) {
	t.Helper()
	read := func(as, path string) apitest.Answer {
		return apitest.Call{As: as, Method: http.MethodGet, Path: path, Org: made}.Do(f.http)
	}
	o := read(apitest.Admin, "/api/orgs/"+made).Object(t, http.StatusOK)
	require.Equal(t, accepted, o)
	require.Contains(t, f.get(apitest.Admin, "/api/orgs").Items(t, "uuid"), made)
	for _, other := range []string{apitest.Member, apitest.Foreigner, apitest.Operator} {
		read(other, "/api/orgs/"+made).Refused(t, http.StatusForbidden)
		require.NotContains(t, f.get(other, "/api/orgs").Items(t, "uuid"), made)
	}
}

// requireReadable is the positive control.
func TestRead_aRemovedCreatorReadsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	apitest.Call{As: apitest.Admin, Method: http.MethodPost, Path: "/api/orgs", Body: `{"displayName": "New"}`}.Do(f.http).Object(t, http.StatusCreated)
	f.world.Join(apitest.Foreigner, made, "", v1alpha1.RoleAdmin)
	f.world.Leave(apitest.Admin, made, "")
	read := apitest.Call{As: apitest.Admin, Method: http.MethodGet, Path: "/api/orgs/" + made, Org: made}
	read.Do(f.http).Refused(t, http.StatusForbidden)
	require.NotContains(t, f.get(apitest.Admin, "/api/orgs").Items(t, "uuid"), made)
	// A later User of the same name is another person.
	f.world.Leave(apitest.Foreigner, made, "")
	u := apitest.Person(apitest.Admin)
	u.CreationTimestamp.Time = u.CreationTimestamp.Add(time.Hour)
	f.world.PutUser(u)
	read.Do(f.http).Refused(t, http.StatusForbidden)
}

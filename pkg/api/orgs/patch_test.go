package orgs_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

type patchFunc func(context.Context, string, any) (*v1alpha1.Organization, error)

// patchThen simulates a concurrent change: the store's answer contains it.
func patchThen(patch patchFunc, change func(*v1alpha1.Organization)) patchFunc {
	return func(ctx context.Context, uuid string, p any) (*v1alpha1.Organization, error) {
		o, err := patch(ctx, uuid, p)
		if err == nil {
			change(o)
		}
		return o, err
	}
}

// recorded returns a pointer to the last patch that reaches the store.
func recorded(f *fixture) *any {
	var seen any
	patch := f.store.patch
	f.store.patch = func(ctx context.Context, uuid string, p any) (*v1alpha1.Organization, error) {
		seen = p
		return patch(ctx, uuid, p)
	}
	return &seen
}

func TestPatch_sendsOneMergePatchOfWhatWasGiven(t *testing.T) {
	t.Parallel()
	type m = map[string]any
	for body, want := range map[string]m{
		`{"displayName": "New"}`:                                          {"displayName": "New"},
		`{"description": "The shop\nof the north"}`:                       {"description": "The shop\nof the north"},
		`{"description": ""}`:                                             nil,
		`{"description": null}`:                                           nil,
		`{"workspaceCreation": "admin"}`:                                  {"workspaceCreation": "admin"},
		`{"catalogEntryCreation": "admin"}`:                               {"catalogEntryCreation": "admin"},
		`{"defaultAccess": "view"}`:                                       {"defaultAccess": "view"},
		`{"displayName": "N", "defaultAccess": "view"}`:                   {"displayName": "N", "defaultAccess": "view"},
		`{"billing": null}`:                                               {"billing": nil},
		`{"billing": {}}`:                                                 nil,
		`{"displayName": "Acme", "workspaceCreation": "members"}`:         nil,
		`{"billing": {"costCenter": "42"}}`:                               {"billing": m{"costCenter": "42"}},
		`{"billing": {"costCenter": null, "labels": null}}`:               {"billing": m{"costCenter": nil, "labels": nil}},
		`{"billing": {"labels": {"team": "red", "unit": null}}}`:          {"billing": m{"labels": m{"team": "red", "unit": nil}}},
		`{"billing": {"costCenter": "` + strings.Repeat("ä", 128) + `"}}`: {"billing": m{"costCenter": strings.Repeat("ä", 128)}},
		`{"billing": {"labels": {"` + strings.Repeat("ü", 63) + `": "` + strings.Repeat("☂", 256) + `"}}}`: {"billing": m{"labels": m{strings.Repeat("ü", 63): strings.Repeat("☂", 256)}}},
	} {
		f := newFixture(t)
		f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) {
			o.Spec.Billing = &v1alpha1.Billing{CostCenter: "1", Labels: map[string]v1alpha1.BillingValue{"unit": "blue"}}
		})
		seen := recorded(f)
		f.patch(apitest.Admin, body).Object(t, http.StatusOK)
		if want == nil {
			require.Zero(t, f.store.writes, body)
			continue
		}
		require.Equal(t, 1, f.store.writes, body)
		require.Equal(t, m{"spec": want}, *seen, body)
	}
}

func TestPatch_takesMergePatchJSON(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	call := apitest.Call{
		As: apitest.Admin, Method: http.MethodPatch, Path: "/api/orgs/" + apitest.Acme, Org: apitest.Acme,
		Body: `{"displayName": "New"}`, ContentType: "application/merge-patch+json",
	}
	require.Equal(t, "New", call.Do(f.http).Object(t, http.StatusOK)["displayName"])
	call.ContentType = "application/json-patch+json"
	call.Do(f.http).Refused(t, http.StatusUnsupportedMediaType)
}

func TestPatch_namesAFieldThatCannotBeChanged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for body, field := range map[string]string{
		`{"displayName": null}`:                                                      "displayName",
		`{"displayName": ""}`:                                                        "displayName",
		`{"displayName": ["a"]}`:                                                     "displayName",
		`{"displayName": "a\nb"}`:                                                    "displayName",
		`{"description": 7}`:                                                         "description",
		`{"description": "` + strings.Repeat("a", 1025) + `"}`:                       "description",
		`{"description": "a\u0000b"}`:                                                "description",
		`{"workspaceCreation": null}`:                                                "workspaceCreation",
		`{"workspaceCreation": "nobody"}`:                                            "workspaceCreation",
		`{"workspaceCreation": "Admin"}`:                                             "workspaceCreation",
		`{"catalogEntryCreation": "view"}`:                                           "catalogEntryCreation",
		`{"catalogEntryCreation": null}`:                                             "catalogEntryCreation",
		`{"defaultAccess": "admin"}`:                                                 "defaultAccess",
		`{"defaultAccess": null}`:                                                    "defaultAccess",
		`{"defaultAccess": {"a": 1}}`:                                                "defaultAccess",
		`{"billing": "free"}`:                                                        "billing",
		`{"billing": []}`:                                                            "billing",
		`{"billing": {"team": "red"}}`:                                               "billing.team",
		`{"billing": {"costCenter": 7}}`:                                             "billing.costCenter",
		`{"billing": {"costCenter": "1", "costCenter": "2"}}`:                        "billing",
		`{"billing": {"labels": "red"}}`:                                             "billing.labels",
		`{"billing": {"labels": {"": "red"}}}`:                                       "billing.labels",
		`{"billing": {"labels": {"team": 7}}}`:                                       "billing.labels.team",
		`{"billing": {"labels": {"a": "1", "a": "2"}}}`:                              "billing.labels",
		`{"uuid": "` + apitest.Nowhere + `"}`:                                        "uuid",
		`{"personal": true}`:                                                         "personal",
		`{"workspaceQuota": {"limit": 99}}`:                                          "workspaceQuota",
		`{"deletionRequestedAt": null}`:                                              "deletionRequestedAt",
		`{"displayName": "a", "displayName": "b"}`:                                   "displayName",
		`{"billing": {"costCenter": "` + strings.Repeat("a", 129) + `"}}`:            "billing.costCenter",
		`{"billing": {"labels": {"` + strings.Repeat("a", 64) + `": "red"}}}`:        "billing.labels",
		`{"billing": {"labels": {"team": "` + strings.Repeat("a", 257) + `"}}}`:      "billing.labels.team",
		`{"billing": {"costCenter": 7, "labels": {"team": 7}, "aaa": 7}, "z": null}`: "z",
		`{"billing": {"costCenter": 7, "labels": {"team": 7}, "aaa": 7}}`:            "billing.aaa",
		`{"workspaceCreation": "x", "defaultAccess": "x", "billing": 1}`:             "workspaceCreation",
		`{"billing": {"costCenter": "47\u000011"}}`:                                  "billing.costCenter",
		`{"billing": {"labels": {"team": "a\nb"}}}`:                                  "billing.labels.team",
		`{"billing": {"labels": {"te\u0000am": "a"}}}`:                               "billing.labels",
		`{"billing": {"labels": {"b": 7, "a": 7}}}`:                                  "billing.labels.a",
	} {
		f.patch(apitest.Admin, body).RefusedField(t, field)
	}
	require.Zero(t, f.store.writes)
	f.patch(apitest.Admin, `{"displayName": "New"}`).Object(t, http.StatusOK)
}

func TestPatch_writesNothingWhenNothingIsGiven(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	answer := f.patch(apitest.Admin, `{}`)
	answer.Object(t, http.StatusOK)
	require.JSONEq(t, acme, answer.Body)
	require.Zero(t, f.store.writes)
	require.Zero(t, f.world.Waits())
}

func TestO1_aRenamedOrgHasItsNewNameAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	before := f.get(apitest.Admin, "/api/orgs/"+apitest.Acme).Object(t, http.StatusOK)
	after := f.patch(apitest.Admin, `{"displayName": "Renamed"}`).Object(t, http.StatusOK)
	require.Zero(t, f.world.StillToCome(), "it waited for the view and for the caller's index")
	require.Equal(t, "Renamed", f.world.Index(apitest.Admin)[0].OrgDisplayName)
	require.Equal(t, after, f.get(apitest.Admin, "/api/orgs/"+apitest.Acme).Object(t, http.StatusOK))
	require.Equal(t, []string{"Renamed"}, f.get(apitest.Admin, "/api/orgs").Items(t, "displayName"))
	before["displayName"] = "Renamed"
	require.Equal(t, before, after, "nothing but the name has changed")
}

func TestO1_aDisplayNameCanRepeat(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.patch(apitest.Admin, `{"displayName": "Globex"}`).Object(t, http.StatusOK)
	f.post(apitest.Admin, `{"displayName": "Globex"}`).Object(t, http.StatusCreated)
}

func TestPatch_standsWhenTheClientLeavesBeforeTheViews(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx, leave := context.WithCancel(t.Context())
	f.store.patch = func(write context.Context, uuid string, p any) (*v1alpha1.Organization, error) {
		leave()
		require.NoError(t, write.Err())
		old, _ := f.world.Org(uuid)
		o := apitest.MergePatched(t, old.Organization, p)
		o.Generation++
		return o, nil
	}
	call := apitest.Call{
		As: apitest.Admin, Method: http.MethodPatch, Path: "/api/orgs/" + apitest.Acme, Org: apitest.Acme,
		Body: `{"displayName": "New"}`, Context: ctx,
	}
	require.Equal(t, "New", call.Do(f.http).Object(t, http.StatusOK)["displayName"])
}

func TestO15_anOrgIsChangedByItsOwnAdminsOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, workspace := range []string{"", apitest.Dev, apitest.Nowhere, "nonsense"} {
		call := apitest.Call{
			Method: http.MethodPatch, Path: "/api/orgs/" + apitest.Acme, Org: apitest.Acme, Workspace: workspace,
			Body: `{"displayName": "Mine"}`,
		}
		for _, user := range []string{apitest.Member, apitest.Mixed, apitest.WSAdmin, apitest.WSMember, apitest.Foreigner, apitest.Operator} {
			call.As = user
			require.Equal(t, "Forbidden", string(call.Do(f.http).Refused(t, http.StatusForbidden).Reason), user)
		}
		require.Zero(t, f.store.writes)
		call.As = apitest.Admin
		call.Do(f.http).Object(t, http.StatusOK)
		f.store.writes = 0
	}
	require.Contains(t, f.patch(apitest.Member, `{"displayName": "Mine"}`).Body, "ask one of its admins")
}

func TestPatch_hidesTheCauseOfAFailure(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.store.patch = func(context.Context, string, any) (*v1alpha1.Organization, error) {
		return nil, errs.Wrap(errs.Internal, context.Canceled, "secret")
	}
	answer := f.patch(apitest.Admin, `{"displayName": "New"}`)
	answer.Refused(t, http.StatusInternalServerError)
	require.NotContains(t, answer.Body, "secret")
	require.NotContains(t, answer.Body, "canceled")
}

// FuzzPatch checks for any body that only the mutable fields reach the store.
func FuzzPatch(f *testing.F) {
	for _, seed := range []string{
		`{"displayName": "New"}`, `{"billing": {"labels": {"a": null}}}`, `{"billing": null, "defaultAccess": "view"}`,
		`{"personal": true}`, `{"displayName": {"a": {}}}`, `{"billing": {"costCenter": "\ud800"}}`, `{`, ``, `null`,
	} {
		f.Add(seed)
	}
	allowed := map[string]bool{"displayName": true, "workspaceCreation": true, "catalogEntryCreation": true, "defaultAccess": true, "billing": true}
	f.Fuzz(func(t *testing.T, body string) {
		x := newFixture(t)
		seen := recorded(x)
		answer := apitest.Call{
			As: apitest.Admin, Method: http.MethodPatch, Path: "/api/orgs/" + apitest.Acme, Org: apitest.Acme,
			Body: body, ContentType: "application/json",
		}.Do(x.http)
		require.Contains(t, []int{http.StatusOK, http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge}, answer.Code)
		if x.store.writes == 0 {
			return
		}
		patch, _ := (*seen).(map[string]any)
		require.Len(t, patch, 1)
		spec, _ := patch["spec"].(map[string]any)
		require.NotEmpty(t, spec)
		for field := range spec {
			require.True(t, allowed[field], field)
		}
	})
}

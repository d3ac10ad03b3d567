package orgs_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/orgs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// acme is the complete answer for Acme. One field more or less breaks the API's contract.
const acme = `{
	"uuid": "11111111-1111-4111-8111-111111111111", "displayName": "Acme", "personal": false, "role": "admin",
	"workspacePath": "root:kedge:orgs:11111111-1111-4111-8111-111111111111",
	"workspaceCreation": "members", "catalogEntryCreation": "members", "defaultAccess": "none", "billing": null,
	"workspaceQuota": {"limit": 50, "used": 3},
	"createdAt": "2026-03-01T12:00:00Z", "createdBy": "alice", "firstAdmin": "alice",
	"phase": "Ready", "conditions": []
}`

func TestOrgs_sayWhatTheyStore(t *testing.T) {
	t.Parallel()
	used := int64(7)
	f := newFixture(t, func(h *orgs.Handler) {
		h.Stored = func(o tenancy.Org) (rest.Amount, bool) {
			return rest.Amount{Used: used, Limit: 10}, o.UUID() == apitest.Acme
		}
	})
	// An item of a list is encoded once for what it shows, and no longer.
	for range 2 {
		for range 2 {
			want := map[string]any{"used": float64(used), "limit": 10.}
			require.Equal(t, want, f.get(apitest.Admin, "/api/orgs/"+apitest.Acme).Object(t, http.StatusOK)["bytes"])
			items, _ := f.get(apitest.Admin, "/api/orgs").Object(t, http.StatusOK)["items"].([]any)
			item, _ := items[0].(map[string]any)
			require.Equal(t, want, item["bytes"])
		}
		used++
	}
}

func TestOrg_hasExactlyItsFields(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	answer := f.get(apitest.Admin, "/api/orgs/"+apitest.Acme)
	answer.Object(t, http.StatusOK)
	require.JSONEq(t, acme, answer.Body)

	answer = f.get(apitest.Admin, "/api/orgs")
	answer.Object(t, http.StatusOK)
	require.JSONEq(t, `{"items": [`+acme+`], "continue": ""}`, answer.Body)
	require.Zero(t, f.world.Waits(), "a read waits for nothing")
}

func TestOrg_showsItsQuotaBillingAndConditions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) {
		o.Spec.WorkspaceQuota = 7
		o.Spec.Billing = &v1alpha1.Billing{CostCenter: "42", Labels: map[string]v1alpha1.BillingValue{"team": "red"}}
		o.Status.Phase = ""
		o.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "Waiting", Message: "for kcp", LastTransitionTime: apitest.Epoch()}}
	})
	o := f.get(apitest.Member, "/api/orgs/"+apitest.Acme).Object(t, http.StatusOK)
	require.Equal(t, map[string]any{"limit": 7.0, "used": 3.0}, o["workspaceQuota"])
	require.Equal(t, map[string]any{"costCenter": "42", "labels": map[string]any{"team": "red"}}, o["billing"])
	require.Equal(t, "Progressing", o["phase"], "an Org that no controller has seen is on its way")
	require.Len(t, o["conditions"], 1)
	require.Equal(t, "member", o["role"])
}

func TestO4_firstAdminIsThatOfTheCallersIndex(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.Annotations[v1alpha1.CreatedByAnnotation] = apitest.Mixed })
	f.world.Join(apitest.Member, apitest.Acme, "", v1alpha1.RoleMember)
	f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.Annotations[v1alpha1.CreatedByAnnotation] = apitest.Admin })
	require.Equal(t, apitest.Mixed, f.get(apitest.Member, "/api/orgs/"+apitest.Acme).Object(t, http.StatusOK)["firstAdmin"])
	require.Equal(t, []string{apitest.Mixed}, f.get(apitest.Member, "/api/orgs").Items(t, "firstAdmin"))
}

func TestOrgs_listTheCallersAndNoOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for user, want := range map[string][]string{
		apitest.Admin:     {apitest.Acme},
		apitest.Member:    {apitest.Acme},
		apitest.Foreigner: {apitest.Globex},
		// A Workspace member is not a member of the Org (O-15).
		apitest.WSAdmin: {},
		// A platform admin is not a member of any Org.
		apitest.Operator: {},
	} {
		require.Equal(t, want, f.get(user, "/api/orgs").Items(t, "uuid"), user)
	}
}

func TestOrgs_leaveOutTheDeleted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	require.Equal(t, []string{apitest.Acme}, f.get(apitest.Admin, "/api/orgs").Items(t, "uuid"))
	f.world.DeleteOrg(apitest.Acme)
	require.Empty(t, f.get(apitest.Admin, "/api/orgs").Items(t, "uuid"), "before the index has followed")
	f.world.Join(apitest.Admin, apitest.Acme, "", v1alpha1.RoleAdmin)
	require.Empty(t, f.get(apitest.Admin, "/api/orgs").Items(t, "uuid"), "after it")
	f.get(apitest.Admin, "/api/orgs/"+apitest.Acme).Refused(t, http.StatusNotFound)
	f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.Status.DeletionRequestedAt = nil })
	require.Empty(t, f.get(apitest.Admin, "/api/orgs").Items(t, "uuid"), "undeleted, before the index has followed")
	f.world.Join(apitest.Admin, apitest.Acme, "", v1alpha1.RoleAdmin)
	require.Equal(t, []string{apitest.Acme}, f.get(apitest.Admin, "/api/orgs").Items(t, "uuid"))
}

func TestO1_orgsAreSortedByDisplayNameAndUUID(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const second = "00000000-0000-4000-8000-000000000000"
	f.world.PutOrg(apitest.Organization(second, "Acme", apitest.Foreigner), "secondcluster")
	f.world.Join(apitest.Admin, apitest.Globex, "", v1alpha1.RoleMember)
	f.world.Join(apitest.Admin, second, "", v1alpha1.RoleMember)
	require.Equal(t, []string{second, apitest.Acme, apitest.Globex}, f.get(apitest.Admin, "/api/orgs").Items(t, "uuid"))
	require.Equal(t, []string{apitest.Globex}, f.get(apitest.Admin, "/api/orgs?q=GLOB").Items(t, "uuid"))
	first := f.get(apitest.Admin, "/api/orgs?limit=2")
	require.Equal(t, []string{second, apitest.Acme}, first.Items(t, "uuid"))
	token, _ := first.Object(t, http.StatusOK)["continue"].(string)
	require.Equal(t, []string{apitest.Globex}, f.get(apitest.Admin, "/api/orgs?limit=2&continue="+token).Items(t, "uuid"))
	f.get(apitest.Admin, "/api/orgs?limit=501").RefusedField(t, "query:limit")
}

func TestOrg_isForItsMembersOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, user := range []string{apitest.Admin, apitest.Member, apitest.Mixed} {
		f.get(user, "/api/orgs/"+apitest.Acme).Object(t, http.StatusOK)
	}
	missing := apitest.Call{As: apitest.Foreigner, Method: http.MethodGet, Path: "/api/orgs/" + apitest.Nowhere, Org: apitest.Nowhere}.Do(f.http)
	missing.Refused(t, http.StatusForbidden)
	for _, user := range []string{apitest.Foreigner, apitest.WSAdmin, apitest.Operator} {
		foreign := f.get(user, "/api/orgs/"+apitest.Acme)
		foreign.Refused(t, http.StatusForbidden)
		require.Equal(t, missing.Body, foreign.Body, "what is foreign and what is missing look the same")
	}
	f.get("", "/api/orgs/"+apitest.Acme).Refused(t, http.StatusUnauthorized)
	f.get("", "/api/orgs").Refused(t, http.StatusUnauthorized)
}

func TestOrg_showsWhenItWillBePurged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	// The Org is soft-deleted between the check and the write.
	at := apitest.Epoch()
	patched := f.store.patch
	f.store.patch = patchThen(patched, func(o *v1alpha1.Organization) { o.Status.DeletionRequestedAt = &at })
	o := f.patch(apitest.Admin, `{"displayName": "Acme 2"}`).Object(t, http.StatusOK)
	require.Equal(t, "2026-03-01T12:00:00Z", o["deletionRequestedAt"])
	require.Equal(t, apitest.Epoch().Add(720*time.Hour).Format(time.RFC3339), o["purgeAt"])
}

package orgs_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/orgs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// ruled sets the rules of cost centers: 4711 and 12 may be written.
func ruled(required bool, initial string) func(*orgs.Handler) {
	return func(h *orgs.Handler) {
		h.Billing = tenancy.BillingRules{Required: required, Default: initial, Listed: func(c string) bool { return c == "4711" || c == "12" }}
	}
}

func requireCostCenterRefused(t *testing.T, answer apitest.Answer) {
	t.Helper()
	require.Equal(t, "billing.costCenter", answer.Refused(t, http.StatusUnprocessableEntity).Details.Causes[0].Field)
}

func TestBilling_isThatOfANewOrg(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]*v1alpha1.Billing{
		`{"displayName": "New"}`:                                             {CostCenter: "12"},
		`{"displayName": "New", "billing": {"costCenter": "4711"}}`:          {CostCenter: "4711"},
		`{"displayName": "New", "billing": {"labels": {"team": "web"}}}`:     {CostCenter: "12", Labels: map[string]v1alpha1.BillingValue{"team": "web"}},
		`{"displayName": "New", "billing": null}`:                            nil,
		`{"displayName": "New", "billing": {"costCenter": null}}`:            {},
		`{"displayName": "New", "billing": {"labels": null}}`:                {CostCenter: "12"},
		`{"displayName": "New", "billing": {"labels": {"a": "b", "c": ""}}}`: {CostCenter: "12", Labels: map[string]v1alpha1.BillingValue{"a": "b", "c": ""}},
	} {
		f := newFixture(t, ruled(false, "12"))
		var claimed v1alpha1.Claim
		f.store.claimed = func(u *v1alpha1.User) {
			claimed = u.Spec.OrgClaims[len(u.Spec.OrgClaims)-1]
			f.world.PutUser(u)
		}
		f.post(apitest.Operator, body).Object(t, http.StatusCreated)
		require.Equal(t, want, tenancy.ClaimedOrg(claimed).Spec.Billing, body)
	}
}

func TestBilling_isRequiredOfANewOrg(t *testing.T) {
	t.Parallel()
	f := newFixture(t, ruled(true, ""))
	requireCostCenterRefused(t, f.post(apitest.Operator, `{"displayName": "New"}`))
	requireCostCenterRefused(t, f.post(apitest.Operator, `{"displayName": "New", "billing": {"labels": {"team": "web"}}}`))
	requireCostCenterRefused(t, f.post(apitest.Operator, `{"displayName": "New", "billing": {"costCenter": "13"}}`))
	require.Zero(t, f.store.writes)
	f.post(apitest.Operator, `{"displayName": "New", "billing": {"costCenter": "12"}}`).Object(t, http.StatusCreated)
	f = newFixture(t, ruled(true, "12"))
	requireCostCenterRefused(t, f.post(apitest.Operator, `{"displayName": "New", "billing": null}`))
	f.post(apitest.Operator, `{"displayName": "New"}`).Object(t, http.StatusCreated)
}

func TestBilling_cannotBeTakenAwayWhereItIsRequired(t *testing.T) {
	t.Parallel()
	f := newFixture(t, ruled(true, ""))
	for _, body := range []string{`{"billing": null}`, `{"billing": {"costCenter": null}}`, `{"billing": {"costCenter": ""}}`} {
		f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.Spec.Billing = &v1alpha1.Billing{CostCenter: "12"} })
		requireCostCenterRefused(t, f.patch(apitest.Admin, body))
	}
	require.Zero(t, f.store.writes)
	f.patch(apitest.Admin, `{"billing": {"costCenter": "4711"}}`).Object(t, http.StatusOK)
	f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.Spec.Personal = true })
	f.patch(apitest.Admin, `{"billing": null}`).Object(t, http.StatusOK)
}

func TestBilling_isHeldToTheListWhenItIsWritten(t *testing.T) {
	t.Parallel()
	f := newFixture(t, ruled(false, ""))
	f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.Spec.Billing = &v1alpha1.Billing{CostCenter: "lost"} })
	requireCostCenterRefused(t, f.patch(apitest.Admin, `{"billing": {"costCenter": "13"}}`))
	stays := f.patch(apitest.Admin, `{"billing": {"costCenter": "lost", "labels": {"team": "web"}}}`).Object(t, http.StatusOK)
	require.Equal(t, map[string]any{"costCenter": "lost", "labels": map[string]any{"team": "web"}}, stays["billing"])
	f.patch(apitest.Admin, `{"billing": {"costCenter": "12"}}`).Object(t, http.StatusOK)
}

// apply sends a patch that is to go to all Workspaces.
func (f *fixture) apply(as, query, body string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodPatch, Path: "/api/orgs/" + apitest.Acme + "?applyToWorkspaces=" + query, Org: apitest.Acme, Body: body}.Do(f.http)
}

func TestBilling_isGivenToAllWorkspacesInOneWrite(t *testing.T) {
	t.Parallel()
	f := newFixture(t, ruled(false, ""))
	given := func() (string, int64) {
		o, _ := f.world.Org(apitest.Acme)
		b := tenancy.BillingOf(o.Organization, tenancy.Workspace{})
		return b.CostCenter, b.Revision
	}
	require.Equal(t, map[string]any{"costCenter": "12"}, f.apply(apitest.Admin, "true", `{"billing": {"costCenter": "12"}}`).Object(t, http.StatusOK)["billing"])
	require.Equal(t, 1, f.store.writes)
	center, revision := given()
	require.Equal(t, "12", center)
	require.Equal(t, int64(1), revision)

	f.apply(apitest.Admin, "false", `{"billing": {"costCenter": "4711"}}`).Object(t, http.StatusOK)
	center, _ = given()
	require.Equal(t, "12", center)
	f.apply(apitest.Admin, "true", `{}`).Object(t, http.StatusOK)
	center, revision = given()
	require.Equal(t, "4711", center)
	require.Equal(t, int64(2), revision)
	f.apply(apitest.Admin, "maybe", `{}`).Refused(t, http.StatusBadRequest)
	f.apply(apitest.Member, "true", `{}`).Refused(t, http.StatusForbidden)
	require.Equal(t, 3, f.store.writes)
}

func TestBilling_isNotTakenFromAllWorkspaces(t *testing.T) {
	t.Parallel()
	f := newFixture(t, ruled(true, ""))
	requireCostCenterRefused(t, f.apply(apitest.Admin, "true", `{}`))
	f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.Spec.Billing = &v1alpha1.Billing{CostCenter: "lost"} })
	requireCostCenterRefused(t, f.apply(apitest.Admin, "true", `{}`))
	require.Zero(t, f.store.writes)
	f.apply(apitest.Admin, "true", `{"billing": {"costCenter": "12"}}`).Object(t, http.StatusOK)
}

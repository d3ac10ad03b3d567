package workspaces_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/workspaces"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// ruled sets the rules of cost centers: 4711 and 12 may be written.
func ruled(required bool) func(*workspaces.Handler) {
	return func(h *workspaces.Handler) {
		h.Billing = tenancy.BillingRules{Required: required, Listed: func(c string) bool { return c == "4711" || c == "12" }}
	}
}

// billed gives the Organization billing.
func (f *fixture) billed(b *v1alpha1.Billing) {
	f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.Spec.Billing = b })
}

// applied gives all Workspaces the billing of the Organization.
func (f *fixture) applied() { f.world.ChangeOrg(apitest.Acme, tenancy.ApplyBilling) }

// followsBilling has patches of billing followed by the cache.
func (f *fixture) followsBilling(t *testing.T) {
	f.store.patch = func(_ context.Context, _, org, workspace string, patch any) (tenancy.Workspace, error) {
		ws, ok := f.world.Workspace(org, workspace)
		require.True(t, ok)
		raw, ok := patch.(map[string]any)[v1alpha1.BillingAnnotation].(string)
		require.True(t, ok)
		ws.Billing, ws.ResourceVersion = v1alpha1.RevisedBilling{}, apitest.Next(ws.ResourceVersion)
		require.NoError(t, json.Unmarshal([]byte(raw), &ws.Billing))
		f.world.PutWorkspace(ws)
		return ws, nil
	}
}

func requireCostCenterRefused(t *testing.T, answer apitest.Answer) {
	t.Helper()
	require.Equal(t, "billing.costCenter", answer.Refused(t, http.StatusUnprocessableEntity).Details.Causes[0].Field)
}

func TestBilling_ofANewWorkspaceIsThatOfItsOrg(t *testing.T) {
	t.Parallel()
	labels := map[string]v1alpha1.BillingValue{"team": "web"}
	for body, want := range map[string]v1alpha1.Billing{
		`{"displayName": "A"}`: {CostCenter: "12", Labels: labels},
		`{"displayName": "A", "billing": {"costCenter": "4711"}}`:          {CostCenter: "4711", Labels: labels},
		`{"displayName": "A", "billing": {"labels": null}}`:                {CostCenter: "12"},
		`{"displayName": "A", "billing": {"labels": {"team": "db"}}}`:      {CostCenter: "12", Labels: map[string]v1alpha1.BillingValue{"team": "db"}},
		`{"displayName": "A", "billing": null}`:                            {},
		`{"displayName": "A", "billing": {"costCenter":"","labels":null}}`: {},
	} {
		f := newFixture(t)
		f.billed(&v1alpha1.Billing{CostCenter: "12", Labels: labels})
		f.applied()
		var made tenancy.Workspace
		create := f.store.create
		f.store.create = func(ctx context.Context, org string, w tenancy.Workspace) (tenancy.Workspace, error) {
			made = w
			return create(ctx, org, w)
		}
		f.post(apitest.Admin, body).Object(t, http.StatusCreated)
		require.Equal(t, v1alpha1.RevisedBilling{Billing: want, Revision: 1}, made.Billing, body)
	}
}

func TestBilling_isRequiredOfANewWorkspace(t *testing.T) {
	t.Parallel()
	f := newFixture(t, ruled(true))
	requireCostCenterRefused(t, f.post(apitest.Admin, `{"displayName": "A"}`))
	requireCostCenterRefused(t, f.post(apitest.Admin, `{"displayName": "A", "billing": {"costCenter": "13"}}`))
	f.billed(&v1alpha1.Billing{CostCenter: "12"})
	requireCostCenterRefused(t, f.post(apitest.Admin, `{"displayName": "A", "billing": {"costCenter": null}}`))
	require.Zero(t, f.store.writes)
	f.post(apitest.Admin, `{"displayName": "A"}`).Object(t, http.StatusCreated)

	f = newFixture(t, ruled(true))
	f.post(apitest.Admin, `{"displayName": "A", "billing": {"costCenter": "12"}}`).Object(t, http.StatusCreated)
	f = newFixture(t, ruled(true))
	f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.Spec.Personal = true })
	f.post(apitest.Admin, `{"displayName": "A"}`).Object(t, http.StatusCreated)
}

func TestBilling_isChangedByThoseWhoManageTheWorkspace(t *testing.T) {
	t.Parallel()
	f := newFixture(t, ruled(true))
	f.followsBilling(t)
	f.patch(apitest.WSMember, `{"billing": {"costCenter": "12"}}`).Refused(t, http.StatusForbidden)
	requireCostCenterRefused(t, f.patch(apitest.WSAdmin, `{"billing": {"costCenter": "13"}}`))
	require.Zero(t, f.store.writes)
	set := f.patch(apitest.WSAdmin, `{"billing": {"costCenter": "12", "labels": {"team": "web"}}}`).Object(t, http.StatusOK)
	want := map[string]any{"costCenter": "12", "labels": map[string]any{"team": "web"}}
	require.Equal(t, want, set["billing"])
	require.Equal(t, want, f.get(apitest.WSMember, apitest.Dev).Object(t, http.StatusOK)["billing"])
	require.Equal(t, want, f.get(apitest.Admin, apitest.Dev).Object(t, http.StatusOK)["billing"])
	requireCostCenterRefused(t, f.patch(apitest.WSAdmin, `{"billing": {"costCenter": null}}`))
	requireCostCenterRefused(t, f.patch(apitest.WSAdmin, `{"billing": null}`))
	f.patch(apitest.WSAdmin, `{"billing": {"team": "web"}}`).Refused(t, http.StatusBadRequest)
}

// A later change of the Organization leaves a Workspace as it is, and the one that is applied to all
// replaces what it has until somebody changes the Workspace again.
func TestBilling_isReplacedByWhatIsGivenToAll(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.followsBilling(t)
	shown := func() any {
		b, _ := f.get(apitest.WSAdmin, apitest.Dev).Object(t, http.StatusOK)["billing"].(map[string]any)
		return b["costCenter"]
	}
	f.patch(apitest.WSAdmin, `{"billing": {"costCenter": "1"}}`).Object(t, http.StatusOK)
	f.billed(&v1alpha1.Billing{CostCenter: "2", Labels: map[string]v1alpha1.BillingValue{"team": "web"}})
	require.Equal(t, "1", shown())
	read := f.get(apitest.WSAdmin, apitest.Dev).Header.Get("ETag")
	f.applied()
	require.Equal(t, "2", shown())

	ws, _ := f.world.Workspace(apitest.Acme, apitest.Dev)
	f.store.version = ws.ResourceVersion
	change := apitest.Call{
		As: apitest.WSAdmin, Method: http.MethodPatch, Path: path(apitest.Dev), Org: apitest.Acme, Workspace: apitest.Dev,
		Body: `{"billing": {"costCenter": "3"}}`, Header: apitest.IfMatch(read),
	}
	change.Do(f.http).Refused(t, http.StatusPreconditionFailed)
	change.Header = apitest.IfMatch(f.get(apitest.WSAdmin, apitest.Dev).Header.Get("ETag"))
	changed := change.Do(f.http).Object(t, http.StatusOK)
	require.Equal(t, map[string]any{"costCenter": "3", "labels": map[string]any{"team": "web"}}, changed["billing"])
	require.Equal(t, "3", shown())
	f.applied()
	require.Equal(t, "2", shown())
}

package tenancy

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/framework"
)

// requireCostCenter requires that alice reads a cost center of a Workspace.
func requireCostCenter(t *testing.T, hub *framework.Hub, org, workspace, want string) {
	t.Helper()
	read := hub.Do(t, framework.InWorkspace("alice", http.MethodGet, org, workspace, "", nil), http.StatusOK)
	billing, _ := read.JSON["billing"].(map[string]any)
	require.Equal(t, want, billing["costCenter"], workspace)
}

// changesBilling changes the cost centers of two Workspaces in an Organization, on a hub that requires them.
func changesBilling(t *testing.T, hub *framework.Hub, p framework.Platform, owner *v1alpha1.User, org, one, another string) {
	change := func(query string, body map[string]any) call {
		return framework.InOrg("alice", http.MethodPatch, org, query, map[string]any{"billing": body})
	}
	changeOne := func(body map[string]any) call {
		return framework.InWorkspace("alice", http.MethodPatch, org, one, "", map[string]any{"billing": body})
	}
	hub.Do(t, changeOne(map[string]any{"costCenter": "12", "labels": map[string]any{"team": "web"}}), http.StatusOK)
	ws, err := p.Workspaces(p.OrgPath(org)).Get(t.Context(), one, metav1.GetOptions{})
	require.NoError(t, err)
	require.JSONEq(t, `{"costCenter":"12","labels":{"team":"web"}}`, ws.Annotations[v1alpha1.BillingAnnotation])

	hub.Do(t, change("", map[string]any{"costCenter": "13"}), http.StatusOK)
	requireCostCenter(t, hub, org, one, "12")
	requireCostCenter(t, hub, org, another, "4711")
	hub.Do(t, change("?applyToWorkspaces=true", map[string]any{"costCenter": "14"}), http.StatusOK)
	requireCostCenter(t, hub, org, one, "14")
	requireCostCenter(t, hub, org, another, "14")
	hub.Do(t, changeOne(map[string]any{"costCenter": "15"}), http.StatusOK)
	requireCostCenter(t, hub, org, one, "15")

	// A required cost center cannot be missing, but in what is personal.
	for _, refused := range []call{
		change("", map[string]any{"costCenter": nil}), changeOne(map[string]any{"costCenter": nil}),
		framework.InOrg("alice", http.MethodPost, org, "/workspaces", map[string]any{"displayName": "Free", "billing": nil}),
		{As: "alice", Method: http.MethodPost, Path: "/api/orgs", Body: map[string]any{"displayName": "Free", "billing": nil}},
	} {
		answer := hub.Do(t, refused, http.StatusUnprocessableEntity)
		require.Contains(t, string(answer.Raw), "billing.costCenter", refused.Path)
	}
	hub.Do(t, framework.InOrg("alice", http.MethodPatch, owner.Status.PersonalOrg, "", map[string]any{"billing": nil}), http.StatusOK)
}

package apitest

import (
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// UsedWorkspaces is the number of Workspaces that count against an Organization's quota (O-6).
func (w *World) UsedWorkspaces(org string, claims []v1alpha1.Claim) int {
	var existing []string
	for _, ws := range w.Workspaces(org) {
		existing = append(existing, ws.UUID)
	}
	return tenancy.Used(claims, existing)
}

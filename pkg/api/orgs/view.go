package orgs

import (
	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/wire"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// firstAdmin is the first admin in the caller's index (O-4), or the creator if the index has no
// row of the Organization yet.
func (h *Handler) firstAdmin(user string, o tenancy.Org) string {
	for _, e := range h.Views.Index(user) {
		if e.OrgUUID == o.UUID() && e.OrgFirstAdmin != "" {
			return e.OrgFirstAdmin
		}
	}
	return o.CreatedBy()
}

func (h *Handler) viewOf(o tenancy.Org, role v1alpha1.Role, firstAdmin string) rest.Org {
	v := rest.Org{
		UUID: o.UUID(), DisplayName: o.Spec.DisplayName, Description: o.Spec.Description, Personal: o.Spec.Personal, Role: rest.Role(role),
		WorkspacePath:     h.Tree.Org(o.UUID()),
		WorkspaceCreation: string(o.Spec.WorkspaceCreation), CatalogEntryCreation: string(o.Spec.CatalogEntryCreation),
		DefaultAccess: string(o.Spec.DefaultAccess), Billing: wire.Billing(o.Spec.Billing),
		WorkspaceQuota: rest.Quota{Limit: tenancy.Limit(o.Spec.WorkspaceQuota, h.DefaultWorkspaceQuota), Used: h.Views.UsedWorkspaces(o.UUID(), o.Spec.WorkspaceClaims)},
		CreatedAt:      o.CreationTimestamp, CreatedBy: o.CreatedBy(),
		FirstAdmin: firstAdmin,
		Phase:      string(tenancy.PhaseOf(o.Status.CommonStatus)), Conditions: wire.Conditions(o.Status.Conditions),
		DeletionRequestedAt: o.Status.DeletionRequestedAt,
		PurgeAt:             tenancy.PurgeAt(o.Status.DeletionRequestedAt, h.Deletion),
	}
	if h.Stored != nil {
		h.Stored(o, &v)
	}
	return v
}

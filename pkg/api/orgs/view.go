package orgs

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/conditions"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

type quota struct {
	Limit int `json:"limit"`
	Used  int `json:"used"`
}

// view is an Organization in an answer.
type view struct {
	UUID                 string                 `json:"uuid"`
	DisplayName          string                 `json:"displayName"`
	Personal             bool                   `json:"personal"`
	Role                 v1alpha1.Role          `json:"role"`
	WorkspacePath        string                 `json:"workspacePath"`
	WorkspaceCreation    v1alpha1.Who           `json:"workspaceCreation"`
	CatalogEntryCreation v1alpha1.Who           `json:"catalogEntryCreation"`
	DefaultAccess        v1alpha1.DefaultAccess `json:"defaultAccess"`
	Billing              *v1alpha1.Billing      `json:"billing"`
	WorkspaceQuota       quota                  `json:"workspaceQuota"`
	CreatedAt            metav1.Time            `json:"createdAt"`
	CreatedBy            string                 `json:"createdBy"`
	FirstAdmin           string                 `json:"firstAdmin"`
	Phase                v1alpha1.Phase         `json:"phase"`
	Conditions           []conditions.Condition `json:"conditions"`
	DeletionRequestedAt  *metav1.Time           `json:"deletionRequestedAt,omitempty"`
	PurgeAt              *metav1.Time           `json:"purgeAt,omitempty"`
}

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

func (h *Handler) viewOf(o tenancy.Org, role v1alpha1.Role, firstAdmin string) view {
	return view{
		UUID: o.UUID(), DisplayName: o.Spec.DisplayName, Personal: o.Spec.Personal, Role: role,
		WorkspacePath:     h.Tree.Org(o.UUID()),
		WorkspaceCreation: o.Spec.WorkspaceCreation, CatalogEntryCreation: o.Spec.CatalogEntryCreation,
		DefaultAccess: o.Spec.DefaultAccess, Billing: o.Spec.Billing,
		WorkspaceQuota: quota{Limit: tenancy.Limit(o.Spec.WorkspaceQuota, h.DefaultWorkspaceQuota), Used: h.Views.UsedWorkspaces(o.UUID(), o.Spec.WorkspaceClaims)},
		CreatedAt:      o.CreationTimestamp, CreatedBy: o.CreatedBy(),
		FirstAdmin: firstAdmin,
		Phase:      tenancy.PhaseOf(o.Status.CommonStatus), Conditions: conditions.Of(o.Status.Conditions),
		DeletionRequestedAt: o.Status.DeletionRequestedAt,
		PurgeAt:             tenancy.PurgeAt(o.Status.DeletionRequestedAt, h.DeletionGrace),
	}
}

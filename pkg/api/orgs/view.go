package orgs

import (
	"time"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/wire"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
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

// viewOf returns what a person with a role sees of an Organization.
func (h *Handler) viewOf(o tenancy.Org, role v1alpha1.Role, firstAdmin string) rest.Org {
	return h.look(o, role, firstAdmin).view(h.fixed())
}

// encoded is viewOf as an item of a list. The Organization is in the cache, where nobody alters it.
func (h *Handler) encoded(o tenancy.Org, role v1alpha1.Role, firstAdmin string) ([]byte, error) {
	l := h.look(o, role, firstAdmin)
	raw, ok := h.items.Get(l)
	if ok {
		return raw, nil
	}
	raw, err := httpapi.Encode(l.view(h.fixed()))
	if err == nil {
		h.items.Put(l, raw)
	}
	return raw, err
}

// look is all of a view that can change while the hub runs, and fixed is the rest. A view is made of nothing else, so that
// looks that are equal have the same view.
type look struct {
	org        *v1alpha1.Organization
	role       v1alpha1.Role
	firstAdmin string
	// workspaces is the number that counts against the quota.
	workspaces int
	bytes      rest.Amount
	// measured says that bytes is known.
	measured bool
}

type fixed struct {
	tree  tenancy.Tree
	quota int
	grace time.Duration
}

func (h *Handler) fixed() fixed { return fixed{h.Tree, h.DefaultWorkspaceQuota, h.Deletion} }

func (h *Handler) look(o tenancy.Org, role v1alpha1.Role, firstAdmin string) look {
	l := look{
		org: o.Organization, role: role, firstAdmin: firstAdmin,
		workspaces: h.Views.UsedWorkspaces(o.UUID(), o.Spec.WorkspaceClaims),
	}
	if h.Stored != nil {
		l.bytes, l.measured = h.Stored(o)
	}
	return l
}

func (l look) view(f fixed) rest.Org {
	o := tenancy.Org{Organization: l.org}
	v := rest.Org{
		UUID: o.UUID(), DisplayName: o.Spec.DisplayName, Description: o.Spec.Description, Personal: o.Spec.Personal, Role: rest.Role(l.role),
		WorkspacePath:     f.tree.Org(o.UUID()),
		WorkspaceCreation: string(o.Spec.WorkspaceCreation), CatalogEntryCreation: string(o.Spec.CatalogEntryCreation),
		DefaultAccess: string(o.Spec.DefaultAccess), Billing: wire.Billing(o.Spec.Billing),
		WorkspaceQuota: rest.Quota{Limit: tenancy.Limit(o.Spec.WorkspaceQuota, f.quota), Used: l.workspaces},
		CreatedAt:      o.CreationTimestamp, CreatedBy: o.CreatedBy(),
		FirstAdmin: l.firstAdmin,
		Phase:      string(tenancy.PhaseOf(o.Status.CommonStatus)), Conditions: wire.Conditions(o.Status.Conditions),
		DeletionRequestedAt: o.Status.DeletionRequestedAt,
		PurgeAt:             tenancy.PurgeAt(o.Status.DeletionRequestedAt, f.grace),
	}
	if l.measured {
		v.Bytes = &l.bytes
	}
	return v
}

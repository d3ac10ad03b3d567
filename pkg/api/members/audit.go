package members

import (
	"slices"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// added is the intent to create a Membership.
func added(m *v1alpha1.Membership) httpmw.Intent {
	i := httpmw.Intent{Object: m.Spec.UserRef.Name, Facts: audit.Facts{Role: string(m.Spec.Role)}}
	if m.Spec.Sudo {
		i.Facts.Sudo = &m.Spec.Sudo
	}
	if len(m.Spec.Roles) > 0 {
		i.Facts.Roles = texts(m.Spec.Roles)
	}
	return i
}

// changed is the intent to change the spec of a User's Membership. It reduces rights if the cached
// Membership has all that is left.
func (h *Handler) changed(scope *tenancy.Scope, user string, spec map[string]any) httpmw.Intent {
	i := httpmw.Intent{Object: user}
	held, ok := h.member(scope, user)
	i.Reduces = ok && len(spec) > 0
	if role, given := spec["role"].(v1alpha1.Role); given {
		i.Facts.Role = string(role)
		i.Reduces = i.Reduces && tenancy.Lowers(held.Spec.Role, role)
	}
	if sudo, given := spec["sudo"].(bool); given {
		i.Facts.Sudo = &sudo
		i.Reduces = i.Reduces && !sudo
	}
	if roles, given := spec["roles"].([]v1alpha1.RoleRef); given {
		i.Facts.Roles = texts(roles)
		i.Reduces = i.Reduces && !slices.ContainsFunc(roles, func(r v1alpha1.RoleRef) bool { return !slices.Contains(held.Spec.Roles, r) })
	}
	return i
}

func texts(roles []v1alpha1.RoleRef) *[]string {
	all := make([]string, 0, len(roles))
	for _, r := range roles {
		name := r.Name
		if r.Namespace != "" {
			name = r.Namespace + "/" + r.Name
		}
		all = append(all, name)
	}
	return &all
}

package tenancy

import (
	"slices"
	"strings"
	"unicode"

	dnsnames "k8s.io/apimachinery/pkg/util/validation"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// maxRoles is the maximum number of spec.roles of a Membership.
const maxRoles = 32

// CheckRole validates a role. The error names field.
func CheckRole(field string, role v1alpha1.Role) error {
	if !role.AtLeast(v1alpha1.RoleViewer) {
		return errs.InvalidField(field, "must be admin, member or viewer")
	}
	return nil
}

// CheckRoles validates spec.roles of a Membership. It accepts roles that do not exist: they
// are bound as soon as they do. The errors name field.
func CheckRoles(field string, roles []v1alpha1.RoleRef) error {
	if len(roles) > maxRoles {
		return errs.InvalidField(field, "must name at most 32 roles")
	}
	seen := map[v1alpha1.RoleRef]bool{}
	for _, r := range roles {
		switch {
		case r.Name == "":
			return errs.InvalidField(field+".name", "must not be empty")
		case len(r.Name) > 200 || strings.ContainsAny(r.Name, "/%") || strings.ContainsFunc(r.Name, unicode.IsControl) || r.Name == "." || r.Name == "..":
			return errs.InvalidField(field+".name", "must be the name of a ClusterRole or a Role")
		case r.Namespace != "" && len(dnsnames.IsDNS1123Label(r.Namespace)) > 0:
			return errs.InvalidField(field+".namespace", "must be the name of a namespace")
		case ReservedRole(r.Name):
			return errs.InvalidField(field+".name", "must not begin with kedge: or system:, and must not be cluster-admin; use role and sudo instead")
		case seen[r]:
			return errs.InvalidField(field+".name", "must not be given twice for the same namespace")
		}
		seen[r] = true
	}
	return nil
}

// RoleTexts returns further roles as the audit log has them: name or namespace/name.
func RoleTexts(roles []v1alpha1.RoleRef) *[]string {
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

// ReservedRole reports whether spec.roles of a Membership must not name a role of that
// name. The hub writes bindings with rights that no tenant has, so the hub itself refuses
// what kcp would refuse an admin of the Workspace.
func ReservedRole(name string) bool {
	return strings.HasPrefix(name, "kedge:") || strings.HasPrefix(name, "system:") || name == "cluster-admin"
}

// Lowers reports whether a change of roles takes rights away.
func Lowers(from, to v1alpha1.Role) bool { return !to.AtLeast(from) }

// Active reports whether a User can use their rights at present.
func Active(u *v1alpha1.User) bool { return u != nil && MayAct(u, false) == nil }

// Keyed records the caller and the hash of the Idempotency-Key on a new Membership. It does
// nothing without a key.
func Keyed(m *v1alpha1.Membership, caller, keyHash string) {
	if keyHash == "" {
		return
	}
	m.Labels = map[string]string{v1alpha1.IdempotencyKeyLabel: keyHash}
	m.Annotations = map[string]string{v1alpha1.CreatedByAnnotation: caller}
}

// MadeWith reports whether the caller created the Membership with that key.
func MadeWith(m *v1alpha1.Membership, caller, keyHash string) bool {
	return keyHash != "" && m.Labels[v1alpha1.IdempotencyKeyLabel] == keyHash && m.Annotations[v1alpha1.CreatedByAnnotation] == caller
}

// Honoured returns the rows of an index for which a Membership exists, with the lower role if
// the two differ: the index is derived and can be out of date, and must not grant more than
// the Memberships do. membership finds a Membership by the UUIDs of the Organization and, if
// it is not empty, of the Workspace.
func Honoured(entries []v1alpha1.MembershipIndexEntry, membership func(org, workspace string) (*v1alpha1.Membership, bool)) []v1alpha1.MembershipIndexEntry {
	honoured := func(e v1alpha1.MembershipIndexEntry) (role v1alpha1.Role, manager bool) {
		m, ok := membership(e.OrgUUID, e.WorkspaceUUID)
		if !ok || !m.DeletionTimestamp.IsZero() {
			return "", false
		}
		role, manager = e.Role, e.Manager && m.Spec.Manager
		if Lowers(e.Role, m.Spec.Role) {
			role = m.Spec.Role
		}
		return role, manager
	}
	// The index is usually up to date. It is not copied then.
	if !slices.ContainsFunc(entries, func(e v1alpha1.MembershipIndexEntry) bool {
		role, manager := honoured(e)
		return role == "" && !manager || role != e.Role || manager != e.Manager
	}) {
		return entries
	}
	var out []v1alpha1.MembershipIndexEntry
	for _, e := range entries {
		if e.Role, e.Manager = honoured(e); e.Role != "" || e.Manager {
			out = append(out, e)
		}
	}
	return out
}

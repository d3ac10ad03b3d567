package tenancy

import (
	"slices"
	"strings"
	"unicode"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// maxRoles is how many further ClusterRoles a Membership may name.
const maxRoles = 32

// CheckRole refuses what is no role. field is named in the error.
func CheckRole(field string, role v1alpha1.Role) error {
	if role != v1alpha1.RoleAdmin && role != v1alpha1.RoleMember {
		return errs.InvalidField(field, "must be admin or member")
	}
	return nil
}

// CheckRoles refuses further ClusterRoles that a Membership may not name. That
// they exist is not asked for: they are bound when they do.
func CheckRoles(field string, roles []v1alpha1.NamedRef) error {
	if len(roles) > maxRoles {
		return errs.InvalidField(field, "must name at most 32 cluster roles")
	}
	seen := map[string]bool{}
	for _, r := range roles {
		switch {
		case r.Name == "":
			return errs.InvalidField(field+".name", "must not be empty")
		case len(r.Name) > 200 || strings.ContainsAny(r.Name, "/%") || strings.ContainsFunc(r.Name, unicode.IsControl) || r.Name == "." || r.Name == "..":
			return errs.InvalidField(field+".name", "must be the name of a cluster role")
		case ReservedRole(r.Name):
			return errs.InvalidField(field+".name", "must not begin with kedge: or system:, and must not be cluster-admin; use role and sudo instead")
		case seen[r.Name]:
			return errs.InvalidField(field+".name", "must not be given twice")
		}
		seen[r.Name] = true
	}
	return nil
}

// ReservedRole tells whether a ClusterRole may not be given through a Membership.
// The hub binds roles with rights that no tenant has, so what kcp would refuse an
// admin of the Workspace must be refused here.
func ReservedRole(name string) bool {
	return strings.HasPrefix(name, "kedge:") || strings.HasPrefix(name, "system:") || name == "cluster-admin"
}

// Active tells whether a person can make use of their rights at present.
func Active(u *v1alpha1.User) bool { return u != nil && MayAct(u, false) == nil }

// SameMembership tells whether a Membership already says what is asked for.
func SameMembership(have, want *v1alpha1.Membership) bool {
	if have.Spec.Role != want.Spec.Role || have.Spec.Sudo != want.Spec.Sudo || len(have.Spec.Roles) != len(want.Spec.Roles) {
		return false
	}
	named := map[string]bool{}
	for _, r := range have.Spec.Roles {
		named[r.Name] = true
	}
	for _, r := range want.Spec.Roles {
		if !named[r.Name] {
			return false
		}
	}
	return true
}

// Keyed marks a Membership that somebody makes with an Idempotency-Key, by its hash;
// without one nothing is to be found again.
func Keyed(m *v1alpha1.Membership, caller, keyHash string) {
	if keyHash == "" {
		return
	}
	m.Labels = map[string]string{v1alpha1.IdempotencyKeyLabel: keyHash}
	m.Annotations = map[string]string{v1alpha1.CreatedByAnnotation: caller}
}

// MadeWith tells whether the caller made the Membership with that key.
func MadeWith(m *v1alpha1.Membership, caller, keyHash string) bool {
	return keyHash != "" && m.Labels[v1alpha1.IdempotencyKeyLabel] == keyHash && m.Annotations[v1alpha1.CreatedByAnnotation] == caller
}

// Honoured are the rows of an index that a Membership stands behind, with the
// lesser role where the two differ: the index is derived and may be behind, and
// what it says too much must open nothing. membership finds a Membership by the
// UUIDs of the Org and, where it is not empty, of the Workspace.
func Honoured(entries []v1alpha1.MembershipIndexEntry, membership func(org, workspace string) (*v1alpha1.Membership, bool)) []v1alpha1.MembershipIndexEntry {
	honoured := func(e v1alpha1.MembershipIndexEntry) (v1alpha1.Role, bool) {
		m, ok := membership(e.OrgUUID, e.WorkspaceUUID)
		if !ok || !m.DeletionTimestamp.IsZero() {
			return "", false
		}
		if rank(m.Spec.Role) < rank(e.Role) {
			return m.Spec.Role, true
		}
		return e.Role, true
	}
	// As a rule the index is right, and then it is not copied.
	if !slices.ContainsFunc(entries, func(e v1alpha1.MembershipIndexEntry) bool {
		role, ok := honoured(e)
		return !ok || role != e.Role
	}) {
		return entries
	}
	var out []v1alpha1.MembershipIndexEntry
	for _, e := range entries {
		if role, ok := honoured(e); ok {
			e.Role = role
			out = append(out, e)
		}
	}
	return out
}

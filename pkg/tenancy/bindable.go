package tenancy

import (
	"encoding/json"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

const (
	// RulesAnnotation is on a tenant's role in the cache, in place of its rules. kcp never
	// stores it.
	RulesAnnotation = v1alpha1.GroupName + "/rules"
	// maxEncodedRules is the maximum length of RulesAnnotation, in bytes. Every role of every
	// tenant is in the cache.
	maxEncodedRules = 4096
	// maxActions is the maximum number of actions that the rules of a role permit. Each is compared
	// with the rules of the admin role.
	maxActions = 1024
)

// RoleProblem says why a role of spec.roles is not bound. It is empty for a role that is to
// be bound.
type RoleProblem string

// The values of RoleProblem.
const (
	RoleReserved         RoleProblem = "reserved, and never bound"
	RoleMissing          RoleProblem = "not in the workspace, and bound once there"
	RoleNamespaceMissing RoleProblem = "in a namespace that is not in the workspace, and bound once it is there"
	RoleAggregated       RoleProblem = "aggregated from other roles, and bound only if the operator lists it with --bindable-cluster-role"
	RoleTooLarge         RoleProblem = "too large to be compared with " + ClusterRoleAdmin + ", and not bound"
	RoleNotCovered       RoleProblem = "with rights that " + ClusterRoleAdmin + " does not have, and not bound"
)

// RoleName is the name of a role of spec.roles: "name", or "namespace/name" in a namespace.
// Names of roles contain no slash.
func RoleName(r v1alpha1.RoleRef) string { return NamespacedName(r.Namespace, r.Name) }

// NamespacedName is "name", or "namespace/name" if namespace is not empty.
func NamespacedName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// RoleSource reads the roles of one child Workspace from the cache.
type RoleSource struct {
	ClusterRole func(name string) (*rbacv1.ClusterRole, bool)
	Role        func(namespace, name string) (*rbacv1.Role, bool)
	Namespace   func(name string) (metav1.Object, bool)
	// Bindable are the names of ClusterRoles that the operator permits to bind whatever
	// their rules are.
	Bindable []string
}

// Resolve finds the role that a Membership names. A Role comes before a ClusterRole of the
// same name. The problem is empty if the hub is to bind the role; everything that is not
// known for certain is a problem.
func (s RoleSource) Resolve(ref v1alpha1.RoleRef) (rbacv1.RoleRef, RoleProblem) {
	if ReservedRole(ref.Name) {
		return rbacv1.RoleRef{}, RoleReserved
	}
	if ref.Namespace != "" {
		if ns, ok := s.Namespace(ref.Namespace); !ok || ns.GetDeletionTimestamp() != nil {
			return rbacv1.RoleRef{}, RoleNamespaceMissing
		}
		if r, ok := s.Role(ref.Namespace, ref.Name); ok && r.DeletionTimestamp.IsZero() {
			return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: ref.Name}, s.problem(r, r.Rules)
		}
	}
	r, ok := s.ClusterRole(ref.Name)
	// kcp authorizes by its replica of a role that is being deleted.
	if !ok || !r.DeletionTimestamp.IsZero() {
		return rbacv1.RoleRef{}, RoleMissing
	}
	found := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ref.Name}
	switch {
	case slices.Contains(s.Bindable, ref.Name):
		return found, ""
	case r.AggregationRule != nil:
		// Other roles can add rules to it at any time.
		return found, RoleAggregated
	}
	return found, s.problem(r, r.Rules)
}

// problem compares the rules of a role with those of the admin role of the Workspace.
func (s RoleSource) problem(role metav1.Object, rules []rbacv1.PolicyRule) RoleProblem {
	if !ManagedByHub(role) {
		rules = nil
		if json.Unmarshal([]byte(role.GetAnnotations()[RulesAnnotation]), &rules) != nil {
			return RoleTooLarge
		}
	}
	if Actions(rules, maxActions) > maxActions {
		return RoleTooLarge
	}
	admin, ok := s.ClusterRole(ClusterRoleAdmin)
	if !ok || !ManagedByHub(admin) || !admin.DeletionTimestamp.IsZero() {
		return RoleNotCovered
	}
	if covered, _ := Covers(admin.Rules, rules); !covered {
		return RoleNotCovered
	}
	return ""
}

// EncodeRules returns the value of RulesAnnotation. It is empty, which no role can be bound
// with, if the rules are too large.
func EncodeRules(rules []rbacv1.PolicyRule) string {
	if Actions(rules, maxActions) > maxActions {
		return ""
	}
	if rules == nil {
		rules = []rbacv1.PolicyRule{}
	}
	raw, err := json.Marshal(rules)
	if err != nil || len(raw) > maxEncodedRules {
		return ""
	}
	return string(raw)
}

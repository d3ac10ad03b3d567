package tenancy

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// StopsBinding tells whether a change of a Membership, or its end with new nil, takes
// from a person the right to write bindings, as admins have it and who can elevate to
// that: such a person can have bound themselves to all that they had.
func StopsBinding(old, new *v1alpha1.Membership) bool {
	sudo := func(m *v1alpha1.Membership) bool { return m != nil && m.Spec.Sudo }
	return StopsAdmin(old, new) || sudo(old) && !sudo(new)
}

// StopsAdmin tells whether a change of a Membership, or its end with new nil, takes the
// role of an admin from a person.
func StopsAdmin(old, new *v1alpha1.Membership) bool {
	admin := func(m *v1alpha1.Membership) bool { return m != nil && m.Spec.Role == v1alpha1.RoleAdmin }
	return admin(old) && !admin(new)
}

// BoundAtWill is the metadata.name of the User whom a binding of the hub's lets write
// bindings; empty for every other binding, also for one that only has the labels of
// such a one.
func BoundAtWill(b *rbacv1.ClusterRoleBinding) string {
	user := b.Labels[v1alpha1.UserLabel]
	if user == "" || b.Name != personBindingName(ClusterRoleAdmin, user) && b.Name != sudoPrefix+user {
		return ""
	}
	return user
}

// IsAdmin tells whether the grants make the User an admin.
func IsAdmin(grants []Grant, user string) bool {
	return slices.ContainsFunc(grants, func(g Grant) bool { return g.User.Name == user && g.Role == v1alpha1.RoleAdmin })
}

// WithoutPerson returns the subjects of a binding without the person whom kcp knows
// by that username, and whether they were among them.
func WithoutPerson(subjects []rbacv1.Subject, identity string) (left []rbacv1.Subject, named bool) {
	left = slices.DeleteFunc(slices.Clone(subjects), func(s rbacv1.Subject) bool {
		return s.Kind == rbacv1.UserKind && s.Name == identity
	})
	return left, len(left) < len(subjects)
}

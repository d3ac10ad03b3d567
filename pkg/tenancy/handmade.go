package tenancy

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// AdminBound is the metadata.name of the User whom a binding of the hub's makes an
// admin of its Workspace; empty for every other binding, also for one that only has
// the labels of such a one.
func AdminBound(b *rbacv1.ClusterRoleBinding) string {
	user := b.Labels[v1alpha1.UserLabel]
	if user == "" || b.Name != personBindingName(ClusterRoleAdmin, user) {
		return ""
	}
	return user
}

// WithoutPerson returns the subjects of a binding that tenants made without the
// person whom kcp knows by that username, and whether they were among them. The
// hub's own bindings, which the labels tell, are left as they are: they follow from
// Memberships alone.
func WithoutPerson(labels map[string]string, subjects []rbacv1.Subject, identity string) (left []rbacv1.Subject, named bool) {
	if labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedByHub {
		return subjects, false
	}
	left = slices.DeleteFunc(slices.Clone(subjects), func(s rbacv1.Subject) bool {
		return s.Kind == rbacv1.UserKind && s.Name == identity
	})
	return left, len(left) < len(subjects)
}

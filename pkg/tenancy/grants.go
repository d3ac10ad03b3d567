package tenancy

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// Grant is the access of one User to a child Workspace.
type Grant struct {
	User *v1alpha1.User
	// Role is the effective role.
	Role v1alpha1.Role
	// Roles are the roles in spec.roles of the Membership.
	Roles []v1alpha1.RoleRef
	// Sudo permits the User to impersonate SudoGroup.
	Sudo bool
}

// Grants returns the access of Users to a Workspace according to the Memberships: admins of the
// Organization are admins (O-15), members of the Workspace have the role of their Membership, and
// members of the Organization are viewers if its default access is view. Users who are missing,
// soft-deleted (O-8) or not approved have no access.
func Grants(org Org, workspace string, memberships []*v1alpha1.Membership, user func(name string) (*v1alpha1.User, bool)) []Grant {
	byName := map[string]*Grant{}
	for _, m := range memberships {
		if !m.DeletionTimestamp.IsZero() {
			continue
		}
		inWorkspace := m.Spec.Scope == v1alpha1.ScopeWorkspace && m.Spec.WorkspaceRef != nil && m.Spec.WorkspaceRef.Name == workspace
		role := v1alpha1.Role("")
		switch {
		case m.Spec.Scope == v1alpha1.ScopeOrg && m.Spec.Role.AtLeast(v1alpha1.RoleAdmin):
			role = v1alpha1.RoleAdmin
		case m.Spec.Scope == v1alpha1.ScopeOrg && m.Spec.Role.AtLeast(v1alpha1.RoleViewer) && org.Spec.DefaultAccess == v1alpha1.DefaultAccessView:
			role = v1alpha1.RoleViewer
		case inWorkspace:
			role = m.Spec.Role
		}
		if !role.AtLeast(v1alpha1.RoleViewer) && (!inWorkspace || !m.Spec.Sudo) {
			continue
		}
		g := byName[m.Spec.UserRef.Name]
		if g == nil {
			g = &Grant{}
			byName[m.Spec.UserRef.Name] = g
		}
		if Lowers(role, g.Role) {
			g.Role = role
		}
		if inWorkspace {
			g.Sudo = m.Spec.Sudo
			for _, r := range m.Spec.Roles {
				if !ReservedRole(r.Name) {
					g.Roles = append(g.Roles, r)
				}
			}
		}
	}
	grants := make([]Grant, 0, len(byName))
	for name, g := range byName {
		// Sudo without a role gives nothing.
		if u, ok := user(name); ok && Active(u) && g.Role.AtLeast(v1alpha1.RoleViewer) {
			g.User = u
			grants = append(grants, *g)
		}
	}
	return grants
}

// ExtraBindingName is the name of the binding of a User to a role in spec.roles.
func ExtraBindingName(clusterRole, user string) string {
	// Names of Users have no colon, so the names are unique.
	return "kedge:workspace:extra:" + clusterRole + ":user:" + user
}

// personBindingName is the name of the binding of a User to a ClusterRole of the hub.
func personBindingName(clusterRole, user string) string { return clusterRole + ":user:" + user }

// AccessOf returns the RBAC objects for the grants in a Workspace: one binding per User and role, and
// namespace if the role is bound in one, so that no subject of a binding is ever overwritten; and one
// ClusterRole per User with sudo. resolve finds a role of spec.roles; it is RoleSource.Resolve.
func AccessOf(workspace string, grants []Grant, resolve func(v1alpha1.RoleRef) (rbacv1.RoleRef, RoleProblem)) (access []RBAC) {
	type found struct {
		role    rbacv1.RoleRef
		problem RoleProblem
	}
	resolved := map[v1alpha1.RoleRef]found{}
	sudo := false
	for _, g := range grants {
		access = append(access, g.binding(personBindingName(clusterRoleOf(g.Role), g.User.Name), clusterRoleOf(g.Role)))
		for _, r := range g.Roles {
			f, ok := resolved[r]
			if !ok {
				f.role, f.problem = resolve(r)
				resolved[r] = f
			}
			switch {
			case f.problem != "":
			case r.Namespace == "":
				access = append(access, g.binding(ExtraBindingName(r.Name, g.User.Name), r.Name))
			default:
				access = append(access, g.namespacedBinding(r, f.role))
			}
		}
		if g.Sudo {
			sudo = true
			r := g.sudoRole(workspace)
			access = append(access, r, g.binding(r.Name, r.Name))
		}
	}
	if sudo {
		// All Users with sudo share this binding. It is removed with the last of them.
		access = append(access, &rbacv1.ClusterRoleBinding{
			ObjectMeta: managed("kedge:workspace:sudo"),
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: SudoGroup(workspace)}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ClusterRoleAdmin},
		})
	}
	return access
}

func (g Grant) binding(name, role string) *rbacv1.ClusterRoleBinding {
	b := &rbacv1.ClusterRoleBinding{
		ObjectMeta: managed(name),
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: g.User.Spec.RBACIdentity}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
	b.Labels[v1alpha1.UserLabel] = g.User.Name
	return b
}

func (g Grant) namespacedBinding(ref v1alpha1.RoleRef, role rbacv1.RoleRef) *rbacv1.RoleBinding {
	b := &rbacv1.RoleBinding{
		ObjectMeta: managed(ExtraBindingName(ref.Name, g.User.Name)),
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: g.User.Spec.RBACIdentity}},
		RoleRef:    role,
	}
	b.Namespace = ref.Namespace
	b.Labels[v1alpha1.UserLabel] = g.User.Name
	return b
}

// sudoPrefix is the prefix of the names of roles and bindings that permit impersonation.
const sudoPrefix = "kedge:workspace:sudo:user:"

// sudoRole permits one User to impersonate themselves with the sudo group of the Workspace, and
// nothing else.
func (g Grant) sudoRole(workspace string) *rbacv1.ClusterRole {
	r := &rbacv1.ClusterRole{
		ObjectMeta: managed(sudoPrefix + g.User.Name),
		Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{"users"}, ResourceNames: []string{g.User.Spec.RBACIdentity}},
			{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{"groups"}, ResourceNames: []string{SudoGroup(workspace), "system:authenticated"}},
		},
	}
	r.Labels[v1alpha1.UserLabel] = g.User.Name
	return r
}

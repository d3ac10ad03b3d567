package tenancy

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

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
		if !role.AtLeast(v1alpha1.RoleViewer) {
			continue
		}
		g := byName[m.Spec.UserRef.Name]
		if g == nil {
			g = &Grant{}
			byName[m.Spec.UserRef.Name] = g
		}
		if !g.Role.AtLeast(role) {
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
		if u, ok := user(name); ok && Active(u) {
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

// Access are the RBAC objects of people in a child Workspace.
type Access struct {
	// Roles permit Users with sudo to impersonate, one per User.
	Roles []*rbacv1.ClusterRole
	// Bindings has one binding per User and role, so that no subject of a binding is ever
	// overwritten.
	Bindings []*rbacv1.ClusterRoleBinding
	// NamespacedBindings has one binding per User, role and namespace.
	NamespacedBindings []*rbacv1.RoleBinding
}

// AccessOf returns the objects for the grants in a Workspace. resolve finds a role of spec.roles; it
// is RoleSource.Resolve.
func AccessOf(workspace string, grants []Grant, resolve func(v1alpha1.RoleRef) (rbacv1.RoleRef, RoleProblem)) Access {
	var a Access
	type found struct {
		role    rbacv1.RoleRef
		problem RoleProblem
	}
	resolved := map[v1alpha1.RoleRef]found{}
	sudo := false
	for _, g := range grants {
		a.Bindings = append(a.Bindings, g.binding(personBindingName(clusterRoleOf(g.Role), g.User.Name), clusterRoleOf(g.Role)))
		for _, r := range g.Roles {
			f, ok := resolved[r]
			if !ok {
				f.role, f.problem = resolve(r)
				resolved[r] = f
			}
			switch {
			case f.problem != "":
			case r.Namespace == "":
				a.Bindings = append(a.Bindings, g.binding(ExtraBindingName(r.Name, g.User.Name), r.Name))
			default:
				a.NamespacedBindings = append(a.NamespacedBindings, g.namespacedBinding(r, f.role))
			}
		}
		if g.Sudo {
			sudo = true
			r := g.sudoRole(workspace)
			a.Roles = append(a.Roles, r)
			a.Bindings = append(a.Bindings, g.binding(r.Name, r.Name))
		}
	}
	if sudo {
		// All Users with sudo share this binding. It is removed with the last of them.
		a.Bindings = append(a.Bindings, &rbacv1.ClusterRoleBinding{
			ObjectMeta: managed("kedge:workspace:sudo"),
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: SudoGroup(workspace)}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ClusterRoleAdmin},
		})
	}
	return a
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

// SameBinding reports whether a binding is as desired. A binding that is being deleted is not: kcp does
// not replicate writes to it while finalizers hold it.
func SameBinding(have, want *rbacv1.ClusterRoleBinding) bool {
	return have.DeletionTimestamp.IsZero() && have.RoleRef == want.RoleRef && slices.Equal(have.Subjects, want.Subjects) &&
		have.Labels[v1alpha1.ManagedByLabel] == want.Labels[v1alpha1.ManagedByLabel] &&
		have.Labels[v1alpha1.UserLabel] == want.Labels[v1alpha1.UserLabel]
}

// SameNamespacedBinding is SameBinding for a RoleBinding.
func SameNamespacedBinding(have, want *rbacv1.RoleBinding) bool {
	return have.DeletionTimestamp.IsZero() && have.RoleRef == want.RoleRef && slices.Equal(have.Subjects, want.Subjects) &&
		have.Labels[v1alpha1.ManagedByLabel] == want.Labels[v1alpha1.ManagedByLabel] &&
		have.Labels[v1alpha1.UserLabel] == want.Labels[v1alpha1.UserLabel]
}

// SameRole reports whether a ClusterRole is as desired. A ClusterRole that is being deleted is not, as
// with SameBinding.
func SameRole(have, want *rbacv1.ClusterRole) bool {
	return have.DeletionTimestamp.IsZero() && apiequality.Semantic.DeepEqual(have.Rules, want.Rules) && have.AggregationRule == nil &&
		have.Labels[v1alpha1.ManagedByLabel] == want.Labels[v1alpha1.ManagedByLabel] &&
		have.Labels[v1alpha1.UserLabel] == want.Labels[v1alpha1.UserLabel]
}

// AccessChanges are the writes that establish Access in a Workspace.
type AccessChanges struct {
	WriteRoles, RemoveRoles       []*rbacv1.ClusterRole
	WriteBindings, RemoveBindings []*rbacv1.ClusterRoleBinding

	WriteNamespacedBindings, RemoveNamespacedBindings []*rbacv1.RoleBinding
}

// Count is the number of objects that are not as desired.
func (c AccessChanges) Count() int {
	return len(c.WriteRoles) + len(c.RemoveRoles) + len(c.WriteBindings) + len(c.RemoveBindings) +
		len(c.WriteNamespacedBindings) + len(c.RemoveNamespacedBindings)
}

// Changes compares the current with the desired objects. It considers only ClusterRoles of Users; the
// others belong to the workspace controller. The bindings of Bots belong to the bot controller, and those
// for the exports of CatalogEntries to the catalogentry controller.
func (a Access) Changes(roles []*rbacv1.ClusterRole, bindings []*rbacv1.ClusterRoleBinding, namespaced []*rbacv1.RoleBinding) AccessChanges {
	var c AccessChanges
	own := slices.DeleteFunc(slices.Clone(roles), func(r *rbacv1.ClusterRole) bool {
		return r.Labels[v1alpha1.ManagedByLabel] != v1alpha1.ManagedByHub || r.Labels[v1alpha1.UserLabel] == ""
	})
	c.WriteRoles, c.RemoveRoles = differences(own, a.Roles, SameRole)
	ofPeople := slices.DeleteFunc(slices.Clone(bindings), func(b *rbacv1.ClusterRoleBinding) bool {
		_, _, ofEntry := ParseCatalogGrantName(b.Name)
		return ofEntry || b.Labels[v1alpha1.BotLabel] != ""
	})
	c.WriteBindings, c.RemoveBindings = differences(ofPeople, a.Bindings, SameBinding)
	c.WriteNamespacedBindings, c.RemoveNamespacedBindings = differences(namespaced, a.NamespacedBindings, SameNamespacedBinding)
	return c
}

type named interface {
	GetName() string
	GetNamespace() string
	GetResourceVersion() string
	SetResourceVersion(string)
}

func differences[T named](held, wanted []T, same func(have, want T) bool) (write, remove []T) {
	type key struct{ namespace, name string }
	keyOf := func(o T) key { return key{o.GetNamespace(), o.GetName()} }
	want := map[key]T{}
	for _, o := range wanted {
		want[keyOf(o)] = o
	}
	for _, have := range held {
		switch o, ok := want[keyOf(have)]; {
		case !ok:
			remove = append(remove, have)
		case same(have, o):
			delete(want, keyOf(have))
		default:
			o.SetResourceVersion(have.GetResourceVersion())
		}
	}
	for _, o := range want {
		write = append(write, o)
	}
	return write, remove
}

// OnlyOf returns the changes for one User.
func (c AccessChanges) OnlyOf(user string) AccessChanges {
	role := func(r *rbacv1.ClusterRole) bool { return r.Labels[v1alpha1.UserLabel] != user }
	binding := func(b *rbacv1.ClusterRoleBinding) bool { return b.Labels[v1alpha1.UserLabel] != user }
	namespaced := func(b *rbacv1.RoleBinding) bool { return b.Labels[v1alpha1.UserLabel] != user }
	return AccessChanges{
		WriteNamespacedBindings:  slices.DeleteFunc(c.WriteNamespacedBindings, namespaced),
		RemoveNamespacedBindings: slices.DeleteFunc(c.RemoveNamespacedBindings, namespaced),

		WriteRoles: slices.DeleteFunc(c.WriteRoles, role), RemoveRoles: slices.DeleteFunc(c.RemoveRoles, role),
		WriteBindings: slices.DeleteFunc(c.WriteBindings, binding), RemoveBindings: slices.DeleteFunc(c.RemoveBindings, binding),
	}
}

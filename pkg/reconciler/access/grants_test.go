package access_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/access"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// rights is one Workspace with its Memberships, bindings and roles.
type rights struct {
	*kcptest.KCP
	bindable []string
}

var key = controller.Key{Cluster: "org", Name: "w"}

func newRights(t *testing.T, memberships ...*v1alpha1.Membership) *rights {
	t.Helper()
	r := &rights{KCP: kcptest.New(t)}
	r.PutOrg(tenancy.NewOrganization("o", "O", "alice"), "org")
	r.PutWorkspace("org", "w", "c")
	for _, name := range []string{"alice", "bob", "carol", "dave", "gone", "admin"} {
		r.PutUser(name)
	}
	r.Put("c", tenancy.ClusterRoles(nil)[0])
	r.set(memberships...)
	return r
}

// set replaces all Memberships.
func (r *rights) set(memberships ...*v1alpha1.Membership) {
	for _, m := range r.Caches.Memberships.InCluster("org") {
		r.Remove("org", m)
	}
	for _, m := range memberships {
		r.Put("org", m)
	}
}

func (r *rights) reconciler() *access.Reconciler {
	return access.New(r, r.Stored.RBAC, func(cluster string) tenancy.RoleSource {
		return tenancy.RoleSource{
			ClusterRole: func(name string) (*rbacv1.ClusterRole, bool) { return r.Caches.ClusterRoles.Get(cluster, name) },
			Role: func(namespace, name string) (*rbacv1.Role, bool) {
				return r.Roles.Get(cluster, tenancy.NamespacedName(namespace, name))
			},
			Namespace: func(name string) (metav1.Object, bool) { return r.Spaces.Get(cluster, name) },
			Bindable:  r.bindable,
		}
	})
}

// pass returns what one pass writes.
func (r *rights) pass(t *testing.T) []string {
	t.Helper()
	r.ForgetRequests()
	_, err := r.reconciler().Reconcile(t.Context(), key)
	require.NoError(t, err)
	return r.Did()
}

// reconcile requires that one pass writes everything and that a second pass writes
// nothing.
func (r *rights) reconcile(t *testing.T) {
	t.Helper()
	r.pass(t)
	require.Zero(t, r.reconciler().Missing(key))
	require.Empty(t, r.pass(t), "what is right is left alone")
}

func names[T metav1.Object](all []T) (names []string) {
	for _, o := range all {
		names = append(names, tenancy.NamespacedName(o.GetNamespace(), o.GetName()))
	}
	return names
}

// names are the ClusterRoleBindings, and roles the ClusterRoles beside the hub's.
func (r *rights) names() []string { return names(r.Caches.ClusterRoleBindings.InCluster("c")) }

func (r *rights) roles() []string {
	return slices.DeleteFunc(names(r.Caches.ClusterRoles.InCluster("c")), func(name string) bool { return name == tenancy.ClusterRoleAdmin })
}

func (r *rights) binding(name string) *rbacv1.ClusterRoleBinding {
	b, _ := r.Caches.ClusterRoleBindings.Get("c", name)
	return b
}

func further(names ...string) []v1alpha1.RoleRef {
	var refs []v1alpha1.RoleRef
	for _, name := range names {
		refs = append(refs, v1alpha1.RoleRef{Name: name})
	}
	return refs
}

// tenants returns a tenant's ClusterRole as it is in the cache.
func tenants(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	r := &rbacv1.ClusterRole{}
	r.Name = name
	r.Annotations = map[string]string{tenancy.RulesAnnotation: tenancy.EncodeRules(rules)}
	return r
}

func TestGrants_bindExistingRolesAndNeverReservedOnes(t *testing.T) {
	t.Parallel()
	r := newRights(t, tenancy.NewWorkspaceMembership("bob", "w", v1alpha1.RoleMember, further("view", "later", "cluster-admin", "kedge:workspace:admin", "system:x"), false))
	for _, name := range []string{"view", "cluster-admin", "system:x"} {
		r.Put("c", tenants(name))
	}
	r.reconcile(t)
	view := tenancy.ExtraBindingName("view", "bob")
	require.Equal(t, []string{view, "kedge:workspace:member:user:bob"}, r.names())
	require.Equal(t, "view", r.binding(view).RoleRef.Name)
	require.Equal(t, "kedge:bob", r.binding(view).Subjects[0].Name)

	later := tenants("later")
	r.Put("c", later)
	r.reconcile(t)
	require.Contains(t, r.names(), tenancy.ExtraBindingName("later", "bob"))
	r.Delete(t, "c", later)
	r.reconcile(t)
	require.NotContains(t, r.names(), tenancy.ExtraBindingName("later", "bob"))
	r.Remove("c", tenants("view"))
	r.reconcile(t)
	require.NotContains(t, r.names(), view)
	require.Contains(t, r.roles(), "cluster-admin", "a tenant's roles are left alone")
}

func TestGrants_giveAndTakeSudoWithTheMembership(t *testing.T) {
	t.Parallel()
	const ofBob, ofCarol, shared = "kedge:workspace:sudo:user:bob", "kedge:workspace:sudo:user:carol", "kedge:workspace:sudo"
	bob := tenancy.NewWorkspaceMembership("bob", "w", v1alpha1.RoleMember, nil, true)
	r := newRights(t,
		bob,
		tenancy.NewWorkspaceMembership("carol", "w", v1alpha1.RoleMember, nil, true),
		tenancy.NewWorkspaceMembership("dave", "other", v1alpha1.RoleMember, nil, true),
	)
	r.reconcile(t)
	require.Equal(t, []string{ofBob, ofCarol}, r.roles())
	require.Subset(t, r.names(), []string{ofBob, ofCarol, shared})

	// A role that was altered by hand is repaired.
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: ofBob}}
	kcptest.Change(t, r.KCP, "c", role, func(role *rbacv1.ClusterRole) { role.Rules[0].ResourceNames = nil })
	require.Equal(t, 1, r.reconciler().MissingOf(key, "bob"))
	require.Zero(t, r.reconciler().MissingOf(key, "carol"))
	require.Equal(t, map[string]bool{"bob": true}, r.reconciler().MissingFor(key))
	r.reconcile(t)
	require.Empty(t, r.reconciler().MissingFor(key))
	require.True(t, r.Read("c", role))
	require.Equal(t, []string{"kedge:bob"}, role.Rules[0].ResourceNames)

	kcptest.Change(t, r.KCP, "org", bob, func(m *v1alpha1.Membership) { m.Spec.Sudo = false })
	require.Equal(t, 2, r.reconciler().MissingOf(key, "bob"), "the role and its binding")
	r.reconcile(t)
	require.Contains(t, r.names(), shared, "somebody else has sudo")
	require.NotContains(t, r.names(), ofBob)
	carol, _ := r.ByName("carol")
	carol.Status.DeletionRequestedAt = &metav1.Time{Time: r.Clock.Now()}
	r.Put(kcptest.Users, carol)
	r.reconcile(t)
	require.Empty(t, r.roles())
	require.Equal(t, []string{"kedge:workspace:member:user:bob"}, r.names(), "O-8: who is deleted has nothing")
}

// Whichever write fails, the next pass ends in the same state.
func TestO11_accessGoesOnFromAnyStop(t *testing.T) {
	t.Parallel()
	arrange := func() *rights {
		r := newRights(t, tenancy.NewWorkspaceMembership("gone", "w", v1alpha1.RoleMember, nil, true), tenancy.NewMembership("admin", "w", v1alpha1.RoleAdmin))
		r.reconcile(t)
		r.set(tenancy.NewMembership("alice", "", v1alpha1.RoleAdmin), tenancy.NewWorkspaceMembership("bob", "w", v1alpha1.RoleMember, nil, true))
		return r
	}
	control := arrange()
	did := control.pass(t)
	require.NotEmpty(t, did)
	for n := range did {
		r := arrange()
		r.Break(n+1, n%2 == 0)
		_, err := r.reconciler().Reconcile(t.Context(), key)
		require.Error(t, err, did[n])
		r.reconcile(t)
		require.Equal(t, control.names(), r.names(), did[n])
		require.Equal(t, control.roles(), r.roles(), did[n])
	}
}

func TestRightsThatEnd_goWithTheirBindingsAlone(t *testing.T) {
	t.Parallel()
	const admins, members, elevated = "kedge:workspace:admin:user:bob", "kedge:workspace:member:user:bob", "kedge:workspace:sudo:user:bob"
	for _, tc := range []struct {
		name string
		end  func(r *rights, bob, dave *v1alpha1.Membership)
		want []string
	}{
		{"demoted", func(r *rights, bob, _ *v1alpha1.Membership) {
			kcptest.Change(t, r.KCP, "org", bob, func(m *v1alpha1.Membership) { m.Spec.Role = v1alpha1.RoleMember })
		}, []string{"delete clusterrolebindings/" + admins, "create clusterrolebindings/" + members}},
		{"removed", func(r *rights, bob, _ *v1alpha1.Membership) { r.Remove("org", bob) }, []string{"delete clusterrolebindings/" + admins}},
		{"a member", func(r *rights, _, dave *v1alpha1.Membership) { r.Remove("org", dave) }, []string{"delete clusterrolebindings/kedge:workspace:member:user:dave"}},
		{"elevated", func(r *rights, bob, _ *v1alpha1.Membership) {
			kcptest.Change(t, r.KCP, "org", bob, func(m *v1alpha1.Membership) { m.Spec.Role, m.Spec.Sudo = v1alpha1.RoleMember, true })
			r.reconcile(t)
			kcptest.Change(t, r.KCP, "org", bob, func(m *v1alpha1.Membership) { m.Spec.Sudo = false })
		}, []string{"delete clusterrolebindings/" + elevated, "delete clusterrolebindings/kedge:workspace:sudo", "delete clusterroles/" + elevated}},
		{"a binding with the labels of the hub's", func(r *rights, _, _ *v1alpha1.Membership) {
			b := r.binding(admins)
			b.Name, b.UID = "own", ""
			r.Put("c", b)
		}, []string{"delete clusterrolebindings/own"}},
	} {
		bob, dave := tenancy.NewWorkspaceMembership("bob", "w", v1alpha1.RoleAdmin, nil, false), tenancy.NewWorkspaceMembership("dave", "w", v1alpha1.RoleMember, nil, false)
		r := newRights(t, bob, dave)
		r.reconcile(t)
		tc.end(r, bob, dave)
		for i := range tc.want {
			tc.want[i] += " in c"
		}
		did := r.pass(t)
		require.ElementsMatch(t, tc.want, did, tc.name)
		require.Contains(t, did[0], "delete", "rights that ended go first")
		r.reconcile(t)
	}
}

package access_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func (r *rights) inNamespaces() []string { return names(r.Caches.RoleBindings.InCluster("c")) }

func (r *rights) namespaced(name string) *rbacv1.RoleBinding {
	b, _ := r.Caches.RoleBindings.Get("c", name)
	return b
}

func (r *rights) namespace(name string) {
	r.Put("c", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

func configMaps(verb string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{""}, Resources: []string{"configmaps"}}
}

func TestNamespacedRoles_areBoundHealedAndRemoved(t *testing.T) {
	t.Parallel()
	bob := tenancy.NewWorkspaceMembership("bob", "w", v1alpha1.RoleMember, []v1alpha1.RoleRef{
		{Name: "editor", Namespace: "dev"}, {Name: "editor", Namespace: "prod"}, {Name: "editor"},
	}, false)
	r := newRights(t, bob)
	r.Put("c", tenants("editor", configMaps("get")))
	r.namespace("dev")
	name := tenancy.ExtraBindingName("editor", "bob")
	r.reconcile(t)
	require.Equal(t, []string{"dev/" + name}, r.inNamespaces(), "prod does not exist")
	require.Contains(t, r.names(), name)
	b := r.namespaced("dev/" + name)
	require.Equal(t, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "editor"}, b.RoleRef)
	require.Equal(t, []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "kedge:bob"}}, b.Subjects)
	require.Equal(t, "bob", b.Labels[v1alpha1.UserLabel])

	r.namespace("prod")
	require.Equal(t, 1, r.reconciler().MissingOf(key, "bob"))
	require.Zero(t, r.reconciler().MissingOf(key, "carol"))
	r.reconcile(t)
	require.Equal(t, []string{"dev/" + name, "prod/" + name}, r.inNamespaces())

	// A binding that was altered is written again, and one that nothing asks for is removed.
	altered := b.DeepCopy()
	altered.Subjects[0].Name = "mallory"
	r.Put("c", altered)
	more := b.DeepCopy()
	more.Name, more.UID = "more", ""
	r.Put("c", more)
	r.reconcile(t)
	require.Equal(t, []string{"dev/" + name, "prod/" + name}, r.inNamespaces())
	require.Equal(t, "kedge:bob", r.namespaced("dev/" + name).Subjects[0].Name)

	// A Role of the name comes before the ClusterRole, in its namespace only.
	own := &rbacv1.Role{ObjectMeta: tenants("editor", configMaps("list")).ObjectMeta}
	own.Namespace = "dev"
	r.Put("c", own)
	r.reconcile(t)
	require.Equal(t, "Role", r.namespaced("dev/"+name).RoleRef.Kind)
	require.Equal(t, "ClusterRole", r.namespaced("prod/"+name).RoleRef.Kind)

	kcptest.Change(t, r.KCP, "org", bob, func(m *v1alpha1.Membership) { m.Spec.Roles = m.Spec.Roles[:1] })
	r.reconcile(t)
	require.Equal(t, []string{"dev/" + name}, r.inNamespaces())
	require.NotContains(t, r.names(), name)
	r.set()
	r.reconcile(t)
	require.Empty(t, r.inNamespaces())
}

func TestRolesThatGrow_areUnbound(t *testing.T) {
	t.Parallel()
	r := newRights(t, tenancy.NewWorkspaceMembership("bob", "w", v1alpha1.RoleMember, []v1alpha1.RoleRef{
		{Name: "extra"}, {Name: "extra", Namespace: "dev"},
	}, false))
	r.namespace("dev")
	name := tenancy.ExtraBindingName("extra", "bob")
	r.Put("c", tenants("extra", configMaps("get")))
	r.reconcile(t)
	require.Contains(t, r.names(), name)
	require.Equal(t, []string{"dev/" + name}, r.inNamespaces())

	r.Put("c", tenants("extra", configMaps("get"), configMaps("impersonate")))
	require.ElementsMatch(t, []string{"delete clusterrolebindings/" + name + " in c", "delete rolebindings/dev/" + name + " in c"}, r.pass(t), "and nothing else")
	r.bindable = []string{"extra"}
	r.reconcile(t)
	require.Contains(t, r.names(), name, "the operator lists it")
	require.Equal(t, []string{"dev/" + name}, r.inNamespaces())
}

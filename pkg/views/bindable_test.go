package views_test

import (
	"context"
	"sync"
	"testing"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/informer"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

// roleViews are views of the Workspace w of the Organization acme, where bob is a member with
// roles.
func roleViews(t *testing.T, objects ...kcp.Object) (*views.Views, *kcpfake.Server) {
	t.Helper()
	server := kcpfake.New(t)
	workspace := func(name, cluster string) *kcptenancyv1alpha1.Workspace {
		ws := &kcptenancyv1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		ws.Spec.Cluster = cluster
		return ws
	}
	server.Put("orgs", tenancy.NewOrganization("acme", "ACME", "alice"))
	server.Put("orgs", workspace("acme", "c-acme"))
	server.Put("c-acme", workspace("w", "c-w"))
	server.Put("c-acme", tenancy.NewWorkspaceMembership("bob", "w", v1alpha1.RoleMember,
		[]v1alpha1.RoleRef{{Name: "viewer"}, {Name: "editor", Namespace: "dev"}, {Name: "editor", Namespace: "prod"}}, false))
	for _, o := range objects {
		server.Put("c-w", o)
	}
	v, err := views.New(views.Config{
		Clusters: views.Clusters{Users: "users", Orgs: "orgs", Hub: []string{"users", "orgs"}},
		Clients:  server.Clients(), Admin: server.Clients(), Metrics: prometheus.NewRegistry(),
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		informer.Watch(ctx, []string{server.URL()}, v.Organizations, v.ChildWorkspaces, v.Memberships,
			v.Namespaces, v.ClusterRoles, v.Roles, v.ClusterRoleBindings, v.RoleBindings)
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	eventually(t, func() bool { _, ok := v.Workspace("acme", "w"); return ok && len(v.MembershipsOf("bob")) == 1 })
	return v, server
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, time.Minute, time.Millisecond)
}

func TestRoles_areThoseThatHaveABinding(t *testing.T) {
	t.Parallel()
	hubs := map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByHub, v1alpha1.UserLabel: "bob"}
	editor := tenancy.ExtraBindingName("editor", "bob")
	v, server := roleViews(t)
	require.Empty(t, v.BoundRoles("bob", "acme", "w"))

	// A tenant's binding of that name is not the hub's.
	server.Put("c-w", &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: editor, Namespace: "prod"}})
	server.Put("c-w", &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: editor, Namespace: "dev", Labels: hubs}})
	eventually(t, func() bool { return len(v.BoundRoles("bob", "acme", "w")) == 1 })
	require.Equal(t, []v1alpha1.RoleRef{{Name: "editor", Namespace: "dev"}}, v.BoundRoles("bob", "acme", "w"))
	server.Put("c-w", &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: tenancy.ExtraBindingName("viewer", "bob"), Labels: hubs}})
	eventually(t, func() bool { return len(v.BoundRoles("bob", "acme", "w")) == 2 })
	server.Remove("c-w", &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: editor, Namespace: "dev"}})
	eventually(t, func() bool { return len(v.BoundRoles("bob", "acme", "w")) == 1 })
	require.Equal(t, []v1alpha1.RoleRef{{Name: "viewer"}}, v.BoundRoles("bob", "acme", "w"))
	m, _ := v.Membership("c-acme", "w.bob")
	require.Len(t, m.Spec.Roles, 3, "the cached Membership stays as it is")
}

func TestRolesOfTenants_areCachedInCompactForm(t *testing.T) {
	t.Parallel()
	rules := []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}}
	// A tenant cannot say what the rules of a role are.
	meta := func(name, namespace string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Name: name, Namespace: namespace, Labels: map[string]string{"a": "b"},
			Annotations: map[string]string{tenancy.RulesAnnotation: "[]", "note": "x"},
		}
	}
	v, _ := roleViews(t,
		&rbacv1.ClusterRole{ObjectMeta: meta("extra", ""), Rules: rules, AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{}}}},
		&rbacv1.Role{ObjectMeta: meta("extra", "dev"), Rules: rules}, &rbacv1.Role{ObjectMeta: meta("extra", "prod")},
		&corev1.Namespace{ObjectMeta: meta("dev", "")},
		tenancy.ClusterRoles(nil)[0],
	)
	eventually(t, func() bool {
		return len(v.ClusterRoles.InCluster("c-w")) == 2 && len(v.Roles.InCluster("c-w")) == 2 && len(v.Namespaces.InCluster("c-w")) == 1
	})
	annotations := func(encoded string) map[string]string {
		return map[string]string{"kcp.io/cluster": "c-w", tenancy.RulesAnnotation: encoded}
	}
	extra, _ := v.ClusterRoles.Get("c-w", "extra")
	require.Equal(t, annotations(tenancy.EncodeRules(rules)), extra.Annotations)
	require.Empty(t, extra.Rules)
	require.Equal(t, &rbacv1.AggregationRule{}, extra.AggregationRule)
	role, _ := v.Roles.Get("c-w", "dev/extra")
	require.Equal(t, annotations(tenancy.EncodeRules(rules)), role.Annotations)
	role, _ = v.Roles.Get("c-w", "prod/extra")
	require.Equal(t, annotations("[]"), role.Annotations)
	ns, _ := v.Namespaces.Get("c-w", "dev")
	require.Empty(t, ns.Labels)
	admin, _ := v.ClusterRoles.Get("c-w", tenancy.ClusterRoleAdmin)
	require.NotEmpty(t, admin.Rules, "the hub compares its own roles")
}

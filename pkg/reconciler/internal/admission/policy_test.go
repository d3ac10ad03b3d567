package admission

import (
	"testing"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp/kcpfake"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

const policyCluster = "workspace1"

func newPolicies(t *testing.T) (*Policies, *kcpfake.Server) {
	t.Helper()
	p, err := tenancy.NewPolicy("kcp-admin")
	require.NoError(t, err)
	server := kcpfake.New(t)
	return New(p, server.Clients(), server.Clients(), views.Listers{}), server
}

func TestPolicies_putBothObjectsAndRepairThem(t *testing.T) {
	t.Parallel()
	p, server := newPolicies(t)
	for range 2 {
		changed, err := p.Put(t.Context(), policyCluster)
		require.NoError(t, err)
		require.True(t, changed)
		policy, err := p.clients.Policies(policyCluster).Get(t.Context(), tenancy.PolicyName, metav1.GetOptions{})
		require.NoError(t, err)
		binding, err := p.clients.PolicyBindings(policyCluster).Get(t.Context(), tenancy.PolicyName, metav1.GetOptions{})
		require.NoError(t, err)
		require.True(t, p.Policy.InPlace(tenancy.PolicyHash(policy), tenancy.PolicyBindingHash(binding)))
		server.ForgetRequests()
		changed, err = p.Put(t.Context(), policyCluster)
		require.NoError(t, err)
		require.False(t, changed, "kcp has them already")
		policy.Spec.Validations, policy.Labels = policy.Spec.Validations[:1], nil
		_, err = p.clients.Policies(policyCluster).Update(t.Context(), policy, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
}

func TestPolicies_areEnforcedWhereKcpRefusesTheProbe(t *testing.T) {
	t.Parallel()
	p, server := newPolicies(t)
	refusing := func(message string) kcpfake.Fault {
		return func(r kcpfake.Request) error {
			require.Equal(t, []string{metav1.DryRunAll}, r.Query["dryRun"], "nothing is written")
			if message == "" {
				return nil
			}
			return apierrors.NewForbidden(schema.GroupResource{Resource: r.Resource}, r.Name, errMessage(message))
		}
	}
	for message, enforced := range map[string]bool{
		"denied request: the policy " + p.Hash + " is enforced":    true,
		"denied request: the policy 0123456789abcdef is enforced":  false,
		"User \"kcp-admin\" cannot create resource in API group":   false,
		"denied request: bindings are for ServiceAccounts of this": false,
	} {
		server.FailBefore(refusing(message))
		got, err := p.Enforced(t.Context(), policyCluster)
		require.Equal(t, enforced, got, message)
		require.Equal(t, enforced, err == nil, "a refusal for another reason is an error: %v", err)
	}
	server.FailBefore(refusing(""))
	got, err := p.Enforced(t.Context(), policyCluster)
	require.NoError(t, err)
	require.False(t, got)
}

type errMessage string

func (e errMessage) Error() string { return string(e) }

func TestRemoveLegacy_takesWhatThePolicyRefusesAndNoMore(t *testing.T) {
	t.Parallel()
	p, server := newPolicies(t)
	robot := rbacv1.Subject{Kind: "ServiceAccount", Name: "robot", Namespace: "default"}
	alice, group := rbacv1.Subject{Kind: "User", Name: "alice"}, rbacv1.Subject{Kind: "Group", Name: "dev"}
	clusterWide := func(name string, subjects ...rbacv1.Subject) *rbacv1.ClusterRoleBinding {
		b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects}
		server.Put(policyCluster, b)
		return b
	}
	inNamespace := func(name string, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
		b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Finalizers: []string{"example.org/held"}}, Subjects: subjects}
		server.Put(policyCluster, b)
		return b
	}
	managed := metav1.ObjectMeta{Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByHub}, Finalizers: []string{"example.org/held"}}
	clusterWide("people", alice, group)
	mixed, robots, admin := clusterWide("mixed", alice, robot), clusterWide("robots", robot), clusterWide("workspace-admin", rbacv1.Subject{Kind: "User", Name: "kcp-admin"})
	inNamespace("people", alice)
	mixedInNamespace := inNamespace("mixed", robot, group)
	hubs := &rbacv1.ClusterRoleBinding{ObjectMeta: managed, Subjects: []rbacv1.Subject{alice}}
	hubs.Name = "kedge:workspace:admin:user:alice"
	role := &rbacv1.ClusterRole{ObjectMeta: managed}
	role.Name = tenancy.ClusterRoleAdmin
	tenants := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "tenants", Finalizers: []string{"example.org/held"}}}
	namespace := &corev1.Namespace{ObjectMeta: managed}
	namespace.Name = "default"
	server.Put(policyCluster, hubs)
	server.Put(policyCluster, role)
	server.Put(policyCluster, tenants)
	server.Put(policyCluster, namespace)
	for _, export := range []string{"tenancy.kcp.io", "widgets", tenancy.ExportAccess} {
		b := &kcpapisv1alpha2.APIBinding{ObjectMeta: metav1.ObjectMeta{Name: export}}
		b.Spec.Reference.Export = &kcpapisv1alpha2.ExportBindingReference{Path: "root", Name: export}
		server.Put(policyCluster, b)
	}

	counts, err := p.RemoveLegacy(t.Context(), policyCluster)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"subjects of bindings": 5, "bindings": 2, "finalizers of the hub's objects": 3, "APIBindings": 1}, counts)
	require.False(t, server.Read(policyCluster, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "people"}}))
	require.False(t, server.Read(policyCluster, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "people", Namespace: "default"}}))
	require.False(t, server.Read(policyCluster, &kcpapisv1alpha2.APIBinding{ObjectMeta: metav1.ObjectMeta{Name: "tenancy.kcp.io"}}))
	for _, b := range []*rbacv1.ClusterRoleBinding{mixed, robots, admin, hubs} {
		require.True(t, server.Read(policyCluster, b), b.Name)
		require.Len(t, b.Subjects, 1, b.Name)
		require.Empty(t, b.Finalizers, b.Name)
	}
	require.True(t, server.Read(policyCluster, mixedInNamespace))
	require.Equal(t, []rbacv1.Subject{robot}, mixedInNamespace.Subjects)
	require.True(t, server.Read(policyCluster, tenants))
	require.NotEmpty(t, tenants.Finalizers, "a tenant's finalizer on a tenant's object stays")
	for _, export := range []string{"widgets", tenancy.ExportAccess} {
		require.True(t, server.Read(policyCluster, &kcpapisv1alpha2.APIBinding{ObjectMeta: metav1.ObjectMeta{Name: export}}))
	}

	server.ForgetRequests()
	counts, err = p.RemoveLegacy(t.Context(), policyCluster)
	require.NoError(t, err)
	require.Empty(t, counts)
	require.Empty(t, server.Writes())
}

package revocation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// maxExcess is the number of bindings that Excess names.
const maxExcess = 5

// Excess returns the bindings in kcp, at most five of them, that the hub did not make and that give
// a Bot more than is left to it. The admission policy refuses such a binding. One can be older than
// the policy, or of kcp's admin.
func (k Reviews) Excess(ctx context.Context, bot string, left tenancy.Entry) (bindings []string, err error) {
	cluster := left.Workspace.ClusterID
	var kept []rbacv1.PolicyRule
	for _, name := range left.BoundRoles() {
		rules, err := k.rules(ctx, cluster, name)
		if err != nil {
			return nil, err
		}
		kept = append(kept, rules...)
	}
	more := func(b metav1.Object, subjects []rbacv1.Subject, ref rbacv1.RoleRef) (bool, error) {
		if tenancy.ManagedByHub(b) || len(bindings) == maxExcess || !slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
			return tenancy.IncludesBot(s, b.GetNamespace(), bot)
		}) {
			return false, nil
		}
		name := ref.Name
		if ref.Kind == "Role" {
			name = tenancy.NamespacedName(b.GetNamespace(), name)
		}
		rules, err := k.rules(ctx, cluster, name)
		if errors.Is(err, errTooLarge) {
			// What cannot be compared counts as more.
			return true, nil
		}
		if err != nil {
			return false, err
		}
		covered, _ := tenancy.Covers(kept, rules)
		return !covered, nil
	}
	var clusterWide rbacv1.ClusterRoleBindingList
	if err := k.Clients.ClusterRoleBindings(cluster).GetClient().Get().Resource("clusterrolebindings").Do(ctx).Into(&clusterWide); err != nil {
		return nil, fmt.Errorf("list the ClusterRoleBindings: %w", err)
	}
	for i := range clusterWide.Items {
		b := &clusterWide.Items[i]
		if is, err := more(b, b.Subjects, b.RoleRef); err != nil {
			return nil, err
		} else if is {
			bindings = append(bindings, "ClusterRoleBinding "+b.Name)
		}
	}
	var namespaced rbacv1.RoleBindingList
	if err := k.Clients.RoleBindings(cluster, metav1.NamespaceAll).GetClient().Get().Resource("rolebindings").Do(ctx).Into(&namespaced); err != nil {
		return nil, fmt.Errorf("list the RoleBindings: %w", err)
	}
	for i := range namespaced.Items {
		b := &namespaced.Items[i]
		if is, err := more(b, b.Subjects, b.RoleRef); err != nil {
			return nil, err
		} else if is {
			bindings = append(bindings, "RoleBinding "+tenancy.NamespacedName(b.Namespace, b.Name))
		}
	}
	return bindings, nil
}

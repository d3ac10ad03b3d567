package admission

import (
	"context"
	"encoding/json"
	"fmt"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// RemoveLegacy implements workspace.Policy.
//
// Secrets with tokens that never expire stay: nobody enters through the hub with one,
// and workloads of the tenants may need them. Conversion webhooks stay, too, because
// nothing else converts the objects that are stored.
func (p *Policies) RemoveLegacy(ctx context.Context, cluster string) (map[string]int, error) {
	l := legacy{Policies: p, cluster: cluster, counts: map[string]int{}}
	for _, remove := range []func(context.Context) error{l.clusterRoleBindings, l.roleBindings, l.clusterRoles, l.namespaces, l.apiBindings} {
		if err := remove(ctx); err != nil {
			return nil, fmt.Errorf("remove what the admission policy refuses: %w", err)
		}
	}
	return l.counts, nil
}

// legacy removes from one logical cluster what tenants made there before the policy was
// enforced.
type legacy struct {
	*Policies
	cluster string
	counts  map[string]int
}

func (l legacy) clusterRoleBindings(ctx context.Context) error {
	client := l.clients.ClusterRoleBindings(l.cluster)
	list, err := objects.List(ctx, client, "clusterrolebindings", &rbacv1.ClusterRoleBindingList{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if err := cleanBinding(ctx, l, client, &list.Items[i], list.Items[i].Subjects); err != nil {
			return err
		}
	}
	return nil
}

func (l legacy) roleBindings(ctx context.Context) error {
	list, err := objects.List(ctx, l.clients.RoleBindings(l.cluster, metav1.NamespaceAll), "rolebindings", &rbacv1.RoleBindingList{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		b := &list.Items[i]
		if err := cleanBinding(ctx, l, l.clients.RoleBindings(l.cluster, b.Namespace), b, b.Subjects); err != nil {
			return err
		}
	}
	return nil
}

func (l legacy) clusterRoles(ctx context.Context) error {
	client := l.clients.ClusterRoles(l.cluster)
	list, err := objects.List(ctx, client, "clusterroles", &rbacv1.ClusterRoleList{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if err := takeFinalizers(ctx, l, client, &list.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

func (l legacy) namespaces(ctx context.Context) error {
	client := l.clients.Namespaces(l.cluster)
	list, err := objects.List(ctx, client, "namespaces", &corev1.NamespaceList{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if err := takeFinalizers(ctx, l, client, &list.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// apiBindings deletes the APIBindings of APIs that no Workspace has.
func (l legacy) apiBindings(ctx context.Context) error {
	list, err := objects.List(ctx, l.clients.APIBindings(l.cluster), "apibindings", &kcpapisv1alpha2.APIBindingList{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if b := &list.Items[i]; tenancy.ForbiddenBinding(b) {
			l.counts["APIBindings"]++
			if err := objects.Delete(ctx, l.clients.APIBindings(l.cluster), b); err != nil {
				return err
			}
		}
	}
	return nil
}

// cleanBinding takes finalizers off a binding of the hub, and people out of every other
// binding. It deletes a binding that is left without subjects.
func cleanBinding[T kcp.Object](ctx context.Context, l legacy, client *kcp.Client[T], b T, subjects []rbacv1.Subject) error {
	if tenancy.ManagedByHub(b) {
		return takeFinalizers(ctx, l, client, b)
	}
	left := l.AllowedSubjects(b.GetNamespace(), subjects)
	if len(left) == len(subjects) {
		return nil
	}
	l.counts["subjects of bindings"] += len(subjects) - len(left)
	if len(left) > 0 {
		return patchOnly(ctx, client, b, map[string]any{}, map[string]any{"subjects": left})
	}
	l.counts["bindings"]++
	// As long as finalizers keep a ClusterRoleBinding, kcp goes by its own copy of it.
	if err := patchOnly(ctx, client, b, map[string]any{"finalizers": nil}, map[string]any{"subjects": nil}); err != nil {
		return err
	}
	return objects.Delete(ctx, client, b)
}

// takeFinalizers takes off an object of the hub what would keep it from being deleted.
func takeFinalizers[T kcp.Object](ctx context.Context, l legacy, client *kcp.Client[T], o T) error {
	if len(o.GetFinalizers()) == 0 || !tenancy.ManagedByHub(o) {
		return nil
	}
	l.counts["finalizers of the hub's objects"] += len(o.GetFinalizers())
	return patchOnly(ctx, client, o, map[string]any{"finalizers": nil}, map[string]any{})
}

// patchOnly changes the object that was read, and no other of the same name.
func patchOnly[T kcp.Object](ctx context.Context, client *kcp.Client[T], o T, metadata, change map[string]any) error {
	metadata["uid"] = o.GetUID()
	change["metadata"] = metadata
	patch, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("encode the patch of %s: %w", o.GetName(), err)
	}
	_, err = client.Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: kcp.FieldManager})
	return objects.Retryable(err)
}

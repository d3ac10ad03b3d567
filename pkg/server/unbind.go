package server

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// sweepings is how often it is looked again whether tenants bind somebody anew who is
// being taken out of their bindings.
const sweepings = 5

func (w *writes) emptyBinding(ctx context.Context, cluster string, b *rbacv1.ClusterRoleBinding) error {
	return setSubjects(ctx, w.clients.ClusterRoleBindings(cluster), b, nil, "finalizers")
}

// unbind takes the person of a username out of all bindings of a logical cluster
// that tenants made there, and of the hub's out of those that are not as they should be;
// a binding that then names nobody goes, and so does a ClusterRoleBinding that only
// waits for its finalizers. What tenants bind is in no memory, and what the hub bound
// they may have hidden from it, so kcp is asked, and asked again until there is none.
func (w *writes) unbind(ctx context.Context, cluster, identity string, wanted []*rbacv1.ClusterRoleBinding) error {
	for range sweepings {
		found, err := w.sweepBindings(ctx, cluster, identity, wanted)
		if err != nil || found == 0 {
			return err
		}
	}
	return fmt.Errorf("%w: somebody binds them anew", controller.ErrRetry)
}

func (w *writes) sweepBindings(ctx context.Context, cluster, identity string, wanted []*rbacv1.ClusterRoleBinding) (found int, err error) {
	bindings := w.clients.ClusterRoleBindings(cluster)
	var ofCluster rbacv1.ClusterRoleBindingList
	if err := bindings.GetClient().Get().Resource("clusterrolebindings").Do(ctx).Into(&ofCluster); err != nil {
		return 0, err
	}
	for i := range ofCluster.Items {
		b := &ofCluster.Items[i]
		if slices.ContainsFunc(wanted, func(w *rbacv1.ClusterRoleBinding) bool { return w.Name == b.Name && tenancy.SameBinding(b, w) }) {
			continue
		}
		left, named := tenancy.WithoutPerson(b.Subjects, identity)
		switch {
		case !b.DeletionTimestamp.IsZero():
			// kcp asks its copy of a binding, too, and does not write to that between the
			// deletion and the end of the finalizers. The copy binds whom the binding named
			// when it was deleted, and what it names now need not tell; so it ends.
			err = setSubjects(ctx, bindings, b, left, "finalizers")
		case named:
			err = leave(ctx, bindings, b, left)
		default:
			continue
		}
		found++
		if err != nil {
			return found, err
		}
	}
	var ofNamespaces rbacv1.RoleBindingList
	if err := w.clients.RoleBindings(cluster, metav1.NamespaceAll).GetClient().Get().Resource("rolebindings").Do(ctx).Into(&ofNamespaces); err != nil {
		return found, err
	}
	for i := range ofNamespaces.Items {
		b := &ofNamespaces.Items[i]
		// The hub makes none, whatever their labels say; and kcp keeps no copies.
		if left, named := tenancy.WithoutPerson(b.Subjects, identity); named {
			found++
			if err := leave(ctx, w.clients.RoleBindings(cluster, b.Namespace), b, left); err != nil {
				return found, err
			}
		}
	}
	return found, nil
}

// leave gives a binding the subjects that are left. One of nobody goes, but for what
// has a finalizer: it, or kcp's copy of it, would stay, and go on to bind.
func leave[T kcp.Object](ctx context.Context, client *kcp.Client[T], binding T, subjects []rbacv1.Subject) error {
	if err := setSubjects(ctx, client, binding, subjects); err != nil || len(subjects) > 0 || len(binding.GetFinalizers()) > 0 {
		return err
	}
	return remove(ctx, client, binding)
}

// setSubjects gives a binding other subjects, and takes fields of its metadata away.
// It does not ask for a resource version: whoever loses a right must not keep it by
// writing to the binding all the time.
func setSubjects[T kcp.Object](ctx context.Context, client *kcp.Client[T], binding T, subjects []rbacv1.Subject, without ...string) error {
	metadata := map[string]any{"uid": binding.GetUID()}
	for _, field := range without {
		metadata[field] = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata, "subjects": subjects})
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, binding.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: kcp.FieldManager})
	return again(err)
}

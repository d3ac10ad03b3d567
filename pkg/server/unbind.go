package server

import (
	"context"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// unbind takes the person of a username out of all bindings of a logical cluster
// that tenants made there; a binding that then names nobody goes. What tenants bind
// is in no memory, so kcp is asked.
func (w *writes) unbind(ctx context.Context, cluster, identity string) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		client := w.clients.ClusterRoleBindings(cluster)
		var list rbacv1.ClusterRoleBindingList
		if err := client.GetClient().Get().Resource("clusterrolebindings").Do(ctx).Into(&list); err != nil {
			return err
		}
		for i := range list.Items {
			if err := unbindIn(ctx, client, &list.Items[i], &list.Items[i].Subjects, identity); err != nil {
				return err
			}
		}
		return nil
	})
	g.Go(func() error {
		var list rbacv1.RoleBindingList
		if err := w.clients.RoleBindings(cluster, metav1.NamespaceAll).GetClient().Get().Resource("rolebindings").Do(ctx).Into(&list); err != nil {
			return err
		}
		for i := range list.Items {
			b := &list.Items[i]
			if err := unbindIn(ctx, w.clients.RoleBindings(cluster, b.Namespace), b, &b.Subjects, identity); err != nil {
				return err
			}
		}
		return nil
	})
	return g.Wait()
}

func unbindIn[T kcp.Object](ctx context.Context, client *kcp.Client[T], binding T, subjects *[]rbacv1.Subject, identity string) error {
	left, named := tenancy.WithoutPerson(binding.GetLabels(), *subjects, identity)
	if !named {
		return nil
	}
	if len(left) == 0 {
		return fenced(ctx, client, binding)
	}
	*subjects = left
	return put(ctx, client, binding)
}

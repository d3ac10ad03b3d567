package workspace

import (
	"context"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// content keeps the default namespace and the ClusterRoles. kcp creates no namespace in a
// workspace of this type.
type content struct {
	namespaces objects.Cache[*corev1.Namespace]
	apply      func(ctx context.Context, cluster string, o *unstructured.Unstructured) (*unstructured.Unstructured, error)
	roles      RolesCache
	rbac       objects.RBAC
}

func (*content) Condition() string { return v1alpha1.ConditionContentReady }

func (s *content) Reconcile(ctx context.Context, o *object) (controller.Result, error) {
	cluster := o.Spec.Cluster
	// The parts are written in parallel. One that kcp refuses, such as a role that grew too
	// large, keeps none of the others out.
	var writes errgroup.Group
	if n, ok := s.namespaces.Get(cluster, tenancy.DefaultNamespace); !ok || n.Labels[v1alpha1.ManagedByLabel] != v1alpha1.ManagedByHub || controller.Forced(ctx) {
		writes.Go(func() error { return s.applyNamespace(ctx, cluster) })
	}
	held, wanted := s.roles.of(o.Workspace)
	writes.Go(func() error { return s.rbac.Keep(ctx, cluster, held, wanted) })
	return controller.Result{}, writes.Wait()
}

func (s *content) applyNamespace(ctx context.Context, cluster string) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(tenancy.Namespace())
	if err != nil {
		return err
	}
	_, err = s.apply(ctx, cluster, &unstructured.Unstructured{Object: fields})
	return err
}

package workspace

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// content keeps the default namespace and the ClusterRoles. kcp creates no namespace in a
// workspace of this type.
type content struct{ config Config }

func (*content) Condition() string { return v1alpha1.ConditionContentReady }

func (s *content) Reconcile(ctx context.Context, o *object) (controller.Result, error) {
	cluster := o.Spec.Cluster
	// The parts are written in parallel. One that kcp refuses, such as a role that grew too
	// large, keeps none of the others out.
	var writes errgroup.Group
	if n, ok := s.config.Cache.Namespace(cluster, tenancy.DefaultNamespace); !ok || n.Labels[v1alpha1.ManagedByLabel] != v1alpha1.ManagedByHub || controller.Forced(ctx) {
		writes.Go(func() error { return s.config.Content.ApplyNamespace(ctx, cluster, tenancy.Namespace()) })
	}
	held, wanted := s.config.Roles.of(o.Workspace)
	writes.Go(func() error { return s.config.Content.KeepClusterRoles(ctx, cluster, held, wanted) })
	return controller.Result{}, writes.Wait()
}

package workspace

import (
	"context"
	"fmt"

	"github.com/kcp-dev/logicalcluster/v3"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// firstAdmin creates the admin Membership of the person whose default Workspace it is once, and not
// again after they have left. It reads the Workspace from kcp first, because an outdated cache
// can show a Workspace as new. The Organization makes the creators of other Workspaces admins,
// with the claim.
type firstAdmin struct {
	views       Views
	workspaces  objects.Workspaces
	memberships objects.Memberships
}

func (*firstAdmin) Condition() string { return v1alpha1.ConditionFirstAdmin }

func (s *firstAdmin) Reconcile(ctx context.Context, o *object) (controller.Result, error) {
	if tenancy.IsSpare(o) {
		return controller.Result{Message: "nobody owns the workspace yet"}, nil
	}
	by, cluster := o.Annotations[v1alpha1.CreatedByAnnotation], string(logicalcluster.From(o))
	if by == "" || s.done(o) || !s.isDefault(cluster, o.Name) {
		return controller.Result{}, nil
	}
	if u, ok := s.views.ByName(by); !ok || !tenancy.MayHaveMade(u, tenancy.WorkspaceOf("", o.Workspace).CreatedAt) {
		return controller.Result{}, nil
	}
	now, err := s.workspaces.Read(ctx, cluster, o.Name)
	switch {
	case err != nil:
		return controller.Result{}, err
	case now.UID != o.UID || !now.DeletionTimestamp.IsZero():
		return controller.Result{}, fmt.Errorf("%w: the workspace is gone", controller.ErrRetry)
	case s.done(objectOf(now)):
		return controller.Result{}, nil
	}
	return controller.Result{}, s.memberships.Create(ctx, cluster, tenancy.NewMembership(by, o.Name, v1alpha1.RoleAdmin))
}

func (*firstAdmin) done(o *object) bool {
	return meta.IsStatusConditionTrue(o.common.Conditions, v1alpha1.ConditionFirstAdmin)
}

// isDefault reports whether a Workspace is the default Workspace of a personal Organization.
func (s *firstAdmin) isDefault(cluster, workspace string) bool {
	org, ok := s.views.OrgByCluster(cluster)
	return ok && org.Organization != nil && org.Spec.Personal && workspace == tenancy.DefaultWorkspaceOf(org.Organization)
}

// ready waits until kcp reports the Workspace Ready.
type ready struct{}

func (*ready) Condition() string { return v1alpha1.ConditionWorkspaceReady }

func (*ready) Reconcile(_ context.Context, o *object) (controller.Result, error) {
	if o.Workspace.Status.Phase != kcpcorev1alpha1.LogicalClusterPhaseReady {
		return controller.Result{Message: "kcp is making the workspace", Stop: true}, nil
	}
	return controller.Result{}, nil
}

// binding repairs the APIBinding through which the hub watches, if a tenant removed it or
// rejected a claim.
type binding struct {
	bindings tenancy.Bindings
}

func (*binding) Condition() string { return v1alpha1.ConditionWatched }

func (s *binding) Reconcile(ctx context.Context, o *object) (controller.Result, error) {
	waiting, after, err := s.bindings.Keep(ctx, o.Spec.Cluster, meta.FindStatusCondition(o.common.Conditions, v1alpha1.ConditionWatched), controller.Forced(ctx))
	return controller.Result{Message: waiting, RequeueAfter: after, Stop: waiting != "" || err != nil}, err
}

// access waits until the access controller has created all bindings.
type access struct {
	missing func(controller.Key) int
}

func (*access) Condition() string { return v1alpha1.ConditionAccessReady }

func (s *access) Reconcile(_ context.Context, o *object) (controller.Result, error) {
	if tenancy.IsSpare(o) {
		return controller.Result{Message: "nobody has rights in the workspace yet", Stop: true}, nil
	}
	if n := s.missing(controller.Key{Cluster: string(logicalcluster.From(o)), Name: o.Name}); n > 0 {
		return controller.Result{Message: fmt.Sprintf("%d role bindings are being made", n), Stop: true}, nil
	}
	return controller.Result{}, nil
}

package organization

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// firstAdmin creates the Membership of the Organization's creator, one time: a creator who left or was removed
// is not added again, also where a platform admin undeletes an Organization that has nobody left. If somebody deleted the
// Organization's workspace by hand, its people went with it: the creator is added again to the one that is made anew, unless
// others are in it. Before it creates a Membership it reads the Organization and lists the Memberships in kcp: in a cache that
// is behind, an Organization that others have taken over looks new, or empty.
type firstAdmin struct {
	cluster      clusterFunc
	views        Views
	personalRole v1alpha1.Role
	memberships  objects.Memberships
	orgs         organizations
	workspaces   workspaces
}

func (*firstAdmin) Condition() string { return v1alpha1.ConditionFirstAdmin }

func (s *firstAdmin) Reconcile(ctx context.Context, org *v1alpha1.Organization) (controller.Result, error) {
	creator := org.Annotations[v1alpha1.CreatedByAnnotation]
	cluster, ok := s.cluster(org.Name)
	if creator == "" || !ok || s.done(org) {
		return controller.Result{}, nil
	}
	if u, ok := s.views.ByName(creator); !ok || !tenancy.MayHaveMade(u, org.CreationTimestamp) {
		return controller.Result{}, nil
	}
	if due, err := s.due(ctx, org, cluster); err != nil || !due {
		return controller.Result{}, err
	}
	role := v1alpha1.RoleAdmin
	if org.Spec.Personal {
		role = s.personalRole
	}
	return controller.Result{}, s.memberships.Create(ctx, cluster, tenancy.NewMembership(creator, "", role))
}

// done reports whether the creator was added to the workspace that the Organization has.
func (s *firstAdmin) done(org *v1alpha1.Organization) bool {
	added := meta.FindStatusCondition(org.Status.Conditions, v1alpha1.ConditionFirstAdmin)
	if added == nil || added.Status != metav1.ConditionTrue {
		return false
	}
	ws, ok := s.workspaces.of(org.Name)
	return !ok || !ws.CreationTimestamp.After(added.LastTransitionTime.Time)
}

// due reports whether the creator was never added, or to a workspace that is gone and nobody is in the next one.
func (s *firstAdmin) due(ctx context.Context, org *v1alpha1.Organization, cluster string) (bool, error) {
	now, err := s.orgs.current(ctx, org)
	if err != nil || s.done(now) {
		return false, err
	}
	memberships, err := s.memberships.List(ctx, cluster)
	if err != nil {
		return false, err
	}
	return !meta.IsStatusConditionTrue(now.Status.Conditions, v1alpha1.ConditionFirstAdmin) ||
		!slices.ContainsFunc(memberships, func(m *v1alpha1.Membership) bool { return m.Spec.Scope == v1alpha1.ScopeOrg }), nil
}

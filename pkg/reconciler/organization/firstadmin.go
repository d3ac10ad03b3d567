package organization

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// firstAdmin creates the Membership of the Organization's creator, one time. A creator
// who left is not added again, unless the Organization has no Membership of its own
// left. Before it creates one it lists the Memberships in kcp: in a cache that is behind,
// an Organization that others have taken over looks new, or empty.
type firstAdmin struct {
	cluster      clusterFunc
	views        Views
	personalRole v1alpha1.Role
	memberships  objects.Memberships
	orgs         organizations
}

func (*firstAdmin) Condition() string { return v1alpha1.ConditionFirstAdmin }

func (s *firstAdmin) Reconcile(ctx context.Context, org *v1alpha1.Organization) (controller.Result, error) {
	creator := org.Annotations[v1alpha1.CreatedByAnnotation]
	cluster, ok := s.cluster(org.Name)
	if creator == "" || !ok {
		return controller.Result{}, nil
	}
	if s.done(org) && slices.ContainsFunc(s.views.MembershipsIn(cluster), func(m *v1alpha1.Membership) bool { return m.Spec.Scope == v1alpha1.ScopeOrg }) {
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

func (*firstAdmin) done(org *v1alpha1.Organization) bool {
	return meta.IsStatusConditionTrue(org.Status.Conditions, v1alpha1.ConditionFirstAdmin)
}

// due reports whether the creator was never added, or kcp has no Membership of the Organization's own.
func (s *firstAdmin) due(ctx context.Context, org *v1alpha1.Organization, cluster string) (bool, error) {
	if !s.done(org) {
		// Of a new Organization one object is read: kcp takes longer for a list. The cache follows if it is behind.
		now, err := s.orgs.current(ctx, org)
		return err == nil && !s.done(now), err
	}
	memberships, err := s.memberships.List(ctx, cluster)
	return err == nil && !slices.ContainsFunc(memberships, func(m *v1alpha1.Membership) bool { return m.Spec.Scope == v1alpha1.ScopeOrg }), err
}

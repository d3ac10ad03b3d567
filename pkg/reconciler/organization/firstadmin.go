package organization

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// firstAdmin makes whoever asked for the Org its admin, once: somebody who left
// is not put back, unless the Org has nobody but in its Workspaces. Before anybody is
// put in kcp itself is asked: to a memory that is behind, an Org that others have
// taken over looks as if nobody had come yet, or everybody gone.
type firstAdmin struct {
	place       place
	user        func(name string) (*v1alpha1.User, bool)
	personal    v1alpha1.Role
	memberships func(cluster string) []*v1alpha1.Membership
	// list and now ask kcp itself.
	list   func(ctx context.Context, cluster string) ([]v1alpha1.Membership, error)
	now    now
	create func(ctx context.Context, cluster string, m *v1alpha1.Membership) error
}

func (*firstAdmin) Condition() string { return v1alpha1.ConditionFirstAdmin }

func (s *firstAdmin) Reconcile(ctx context.Context, org *v1alpha1.Organization) (controller.Result, error) {
	by := org.Annotations[v1alpha1.CreatedByAnnotation]
	cluster, ok := s.place(org.Name)
	if by == "" || !ok {
		return controller.Result{}, nil
	}
	if s.done(org) && slices.ContainsFunc(s.memberships(cluster), func(m *v1alpha1.Membership) bool { return m.Spec.Scope == v1alpha1.ScopeOrg }) {
		return controller.Result{}, nil
	}
	if u, ok := s.user(by); !ok || !tenancy.MayHaveMade(u, org.CreationTimestamp) {
		return controller.Result{}, nil
	}
	if due, err := s.due(ctx, org, cluster); err != nil || !due {
		return controller.Result{}, err
	}
	role := v1alpha1.RoleAdmin
	if org.Spec.Personal {
		role = s.personal
	}
	return controller.Result{}, s.create(ctx, cluster, tenancy.NewMembership(by, "", role))
}

func (*firstAdmin) done(org *v1alpha1.Organization) bool {
	return meta.IsStatusConditionTrue(org.Status.Conditions, v1alpha1.ConditionFirstAdmin)
}

// due tells whether there is nobody in the Org, or nobody was put in yet.
func (s *firstAdmin) due(ctx context.Context, org *v1alpha1.Organization, cluster string) (bool, error) {
	held, err := s.list(ctx, cluster)
	if err != nil {
		return false, err
	}
	if !slices.ContainsFunc(held, func(m v1alpha1.Membership) bool { return m.Spec.Scope == v1alpha1.ScopeOrg }) {
		return true, nil
	}
	if s.done(org) {
		return false, nil
	}
	org, err = s.now(ctx, org)
	return err == nil && !s.done(org), err
}

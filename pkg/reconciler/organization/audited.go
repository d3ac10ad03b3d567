package organization

import (
	"context"

	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Audit writes a change of a Membership between its intent and its outcome in the audit log. reduces says that
// the change takes rights away and gives none. The spec is empty before an addition, and before and after a removal.
type Audit func(
	action string, reduces bool, cluster string, m *v1alpha1.Membership, before, after v1alpha1.MembershipSpec, write func() error,
) error

// audited carries out spec.membershipChanges, each change with its audit events. The cascade needs none: it
// audits the number of Memberships that it deletes.
type audited struct {
	memberships objects.Memberships
	// clock is the time by which rights end.
	clock clock.PassiveClock
	audit Audit
}

func (a audited) add(ctx context.Context, cluster string, m *v1alpha1.Membership) error {
	return a.audit("add member", false, cluster, m, v1alpha1.MembershipSpec{}, m.Spec, func() error {
		return a.memberships.Create(ctx, cluster, m)
	})
}

// remove deletes just this version of a Membership; otherwise it fails with controller.ErrRetry.
func (a audited) remove(ctx context.Context, cluster string, m *v1alpha1.Membership) error {
	action := "remove member"
	if tenancy.EffectiveAt(m, a.clock.Now()) == nil {
		action = "expire"
	}
	none := v1alpha1.MembershipSpec{}
	return a.audit(action, true, cluster, m, none, none, func() error { return a.memberships.DeleteUnchanged(ctx, cluster, m) })
}

// set changes what just this version of a Membership gives; otherwise it fails with controller.ErrRetry.
func (a audited) set(ctx context.Context, cluster string, m *v1alpha1.Membership, c v1alpha1.MembershipChange) error {
	action, reduces := "change member", tenancy.ReducesMembership(m, c)
	switch {
	case reduces && c.By == "":
		action = "expire"
	case reduces && c.Role != m.Spec.Role:
		action = "demote member"
	}
	return a.audit(action, reduces, cluster, m, m.Spec, tenancy.ChangedMembership(m, c).Spec, func() error {
		return a.memberships.Set(ctx, cluster, m, c)
	})
}

package restore

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// member has the Organization decide what a Step takes from a Membership. The Step is done when its controller has
// carried that out. That the Organization may be left without an admin is no reason to keep somebody who was removed.
func (a *Applier) member(ctx context.Context, s Step) error {
	org, err := a.orgOf(s)
	if err != nil {
		return err
	}
	all, err := a.Store.ListMemberships(ctx, org.ClusterID)
	if err != nil {
		return err
	}
	if s.Facts.Cascade {
		waits := false
		for i := range all {
			m := &all[i]
			if m.Spec.UserRef.Name != s.Object || m.Spec.Scope != v1alpha1.ScopeWorkspace {
				continue
			}
			waits = true
			one := s
			one.Workspace, one.Facts.Cascade = tenancy.WorkspaceUUID(m), false
			if _, err := a.decide(ctx, org, one, m, false); err != nil {
				return err
			}
		}
		if waits {
			// Those in Workspaces are removed before the one in the Organization.
			return errNotYet
		}
	}
	var held *v1alpha1.Membership
	others := false
	for i := range all {
		m := &all[i]
		if m.Name == tenancy.MembershipName(s.Object, s.Workspace) {
			held = m
		} else if m.Spec.Scope == v1alpha1.ScopeOrg {
			others = true
		}
	}
	done, err := a.decide(ctx, org, s, held, s.Workspace == "" && !others)
	if err == nil && !done {
		err = errNotYet
	}
	return err
}

// decide has the Organization accept what a Step takes from a Membership, and reports whether there is nothing left to
// take. abandons is true if the Organization has no other Membership of its own.
func (a *Applier) decide(ctx context.Context, org tenancy.Org, s Step, held *v1alpha1.Membership, abandons bool) (done bool, err error) {
	now := metav1.NewMicroTime(a.Clock.Now().Truncate(time.Microsecond))
	current, err := a.Store.GetOrganization(ctx, org.UUID())
	if errs.Is(err, errs.NotFound) {
		return false, notThere("the organization")
	}
	if err != nil {
		return false, err
	}
	if _, pending, ok := editOf(current, held, s, now); !ok {
		return !pending, nil
	}
	return false, a.write(s, func() error {
		_, err := a.Store.ChangeOrganization(ctx, current, nil, func(_ context.Context, o *v1alpha1.Organization) error {
			e, _, ok := editOf(o, held, s, now)
			if !ok {
				return nil
			}
			changes, err := tenancy.DecideEdit(o, held, e)
			if err != nil || changes == nil {
				return err
			}
			o.Spec.MembershipChanges = changes
			if e.Remove && abandons {
				// The hub gives an Organization without members back to its creator, who can be this person.
				delete(o.Annotations, v1alpha1.CreatedByAnnotation)
			}
			return nil
		})
		return err
	})
}

// editOf returns the edit that a Step makes. ok is false if there is none to make: nothing is left to take, or what the
// Organization has decided about the Membership is to be carried out first, which pending says.
func editOf(o *v1alpha1.Organization, held *v1alpha1.Membership, s Step, now metav1.MicroTime) (e tenancy.MemberEdit, pending, ok bool) {
	before, pending := tenancy.ChangeOf(o, s.Object, s.Workspace)
	pending = pending && tenancy.ChangeApplies(before, held)
	switch {
	case held == nil, pending && tenancy.Removes(before):
		return e, pending, false
	case !pending:
		before = v1alpha1.MembershipChange{
			Role: held.Spec.Role, Manager: held.Spec.Manager, Sudo: held.Spec.Sudo, Roles: held.Spec.Roles, ExpiresAt: held.Spec.ExpiresAt,
		}
	}
	e, ok = s.MemberEdit(before, now)
	return e, pending, ok
}

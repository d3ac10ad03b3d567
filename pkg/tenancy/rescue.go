package tenancy

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// CauseAdminReachable is the cause of a refusal to make somebody admin of an Organization with an admin who can act. The
// field is the name of that admin.
const CauseAdminReachable = "AdminReachable"

// Rescue is a request of a platform admin to make a person admin of an Organization without an admin who can act.
type Rescue struct {
	User, By string
	// Key names a request with an Idempotency-Key; see KeyedUUID. It is empty for others.
	Key string
	At  metav1.MicroTime
}

// Repeats reports whether the same request has made the person admin, and they still are. The arguments are those of
// DecideRescue.
func (r Rescue) Repeats(o *v1alpha1.Organization, memberships []*v1alpha1.Membership) bool {
	if r.Key == "" || o.Annotations[v1alpha1.RescueAnnotation] != r.Key {
		return false
	}
	held := slices.IndexFunc(memberships, func(m *v1alpha1.Membership) bool {
		return m.Spec.Scope == v1alpha1.ScopeOrg && m.Spec.UserRef.Name == r.User
	})
	var m *v1alpha1.Membership
	if held >= 0 {
		m = memberships[held]
	}
	if c, ok := ChangeOf(o, r.User, ""); ok && ChangeApplies(c, m) {
		return LastingAdmin(ChangedMembership(m, c))
	}
	return m != nil && LastingAdmin(m)
}

// DecideRescue returns spec.membershipChanges of the Organization with the change that makes the person its admin.
// memberships are all living Memberships in the Organization, listed in kcp after o was read. active reports whether a
// User can act. An admin by hand without an end who can act is asked instead. A repetition changes nothing.
func DecideRescue(o *v1alpha1.Organization, memberships []*v1alpha1.Membership, r Rescue, active func(user string) bool) ([]v1alpha1.MembershipChange, error) {
	switch {
	case r.Repeats(o, memberships):
		return nil, nil
	case o.Spec.Personal:
		return nil, errs.New(errs.Conflict, "this is a personal organization: it has no other admins than its owner")
	case o.Status.DeletionRequestedAt != nil:
		return nil, errs.New(errs.Conflict, "this organization is deleted; undelete it first")
	case r.User == r.By:
		return nil, errs.New(errs.Forbidden, "platform admins have no way into an organization; name somebody else")
	case !active(r.User):
		return nil, errs.New(errs.Conflict, "user "+r.User+" cannot act: they are not approved, or deleted")
	}
	var held *v1alpha1.Membership
	for _, m := range memberships {
		if m.Spec.Scope != v1alpha1.ScopeOrg {
			continue
		}
		user := m.Spec.UserRef.Name
		if user == r.User {
			held = m
		}
		after := m
		if c, ok := ChangeOf(o, user, ""); ok && ChangeApplies(c, m) {
			after = ChangedMembership(m, c)
		}
		if LastingAdmin(m) && LastingAdmin(after) && active(user) {
			message := "user " + user + " is an admin of this organization and can act; ask them"
			return nil, errs.New(errs.Conflict, message, errs.Cause{Type: CauseAdminReachable, Field: user, Message: message})
		}
	}
	e := MemberEdit{User: r.User, By: r.By, Role: v1alpha1.RoleAdmin, Expiry: &Expiry{}, At: r.At}
	e.Add = held == nil || !ByHand(held)
	return DecideEdit(o, held, e)
}

package tenancy

import (
	"cmp"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// RegistrationOf is the registration of a User; Approved is the default.
func RegistrationOf(u *v1alpha1.User) v1alpha1.Registration {
	return cmp.Or(u.Spec.Registration, v1alpha1.RegistrationApproved)
}

// MayAct refuses Users who are soft-deleted (O-8) or whose registration is not approved.
// selfService marks the requests that such Users may make nevertheless.
func MayAct(u *v1alpha1.User, selfService bool) error {
	switch {
	case selfService:
		return nil
	case !u.DeletionTimestamp.IsZero() || u.Status.DeletionRequestedAt != nil:
		return errs.New(errs.Forbidden, "this account was deleted; until its grace period ends it can be undeleted with POST /api/users/me/undelete")
	case u.Spec.Registration == v1alpha1.RegistrationPending:
		return errs.New(errs.Forbidden, "your registration waits for the approval of a platform admin")
	case u.Spec.Registration == v1alpha1.RegistrationRejected:
		return Rejected(u)
	}
	return nil
}

// Rejected is the refusal of a User whose registration was rejected, with the reason that a platform admin gave.
func Rejected(u *v1alpha1.User) error {
	because := ""
	if u.Spec.RejectionReason != "" {
		because = " (" + u.Spec.RejectionReason + ")"
	}
	return errs.New(errs.Forbidden, "your registration was rejected"+because+"; ask a platform admin")
}

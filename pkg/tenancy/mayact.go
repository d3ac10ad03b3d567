package tenancy

import (
	"cmp"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// RegistrationOf is Approved where nobody has said anything else.
func RegistrationOf(u *v1alpha1.User) v1alpha1.Registration {
	return cmp.Or(u.Spec.Registration, v1alpha1.RegistrationApproved)
}

// MayAct refuses people who may not work at present: the soft-deleted (O-8) and
// those whose registration is not approved. selfService marks the few requests
// that they may make all the same.
func MayAct(u *v1alpha1.User, selfService bool) error {
	switch {
	case selfService:
		return nil
	case !u.DeletionTimestamp.IsZero() || u.Status.DeletionRequestedAt != nil:
		return errs.New(errs.Forbidden, "this account was deleted; until its grace ends it can be undeleted with POST /api/users/me/undelete")
	case u.Spec.Registration == v1alpha1.RegistrationPending:
		return errs.New(errs.Forbidden, "your registration waits for the approval of a platform admin")
	case u.Spec.Registration == v1alpha1.RegistrationRejected:
		return errs.New(errs.Forbidden, "your registration was rejected; ask a platform admin")
	}
	return nil
}

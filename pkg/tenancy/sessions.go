package tenancy

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// SessionEnded reports whether a Session has ended at the time now. user is the User of the
// Session, or nil if there is none. idle is the time without a use after which a Session
// ends. The end of a Session needs no write: it follows from the two objects and the time,
// so that every replica comes to the same result.
func SessionEnded(s *v1alpha1.Session, user *v1alpha1.User, now time.Time, idle time.Duration) bool {
	switch {
	case s.Spec.EndedAt != nil, !s.DeletionTimestamp.IsZero(),
		!now.Before(s.Spec.ExpiresAt.Time),
		!now.Before(s.Spec.LastUsedAt.Add(idle)),
		s.Spec.Code != nil && !now.Before(s.Spec.Code.ExpiresAt.Time):
		return true
	case user == nil, !user.DeletionTimestamp.IsZero(), user.Spec.Registration == v1alpha1.RegistrationRejected:
		return true
	case s.CreationTimestamp.Before(&user.CreationTimestamp):
		// It is the Session of an earlier User of this name.
		return true
	}
	return notAfter(s.CreationTimestamp, user.Status.DeletionRequestedAt) || notAfter(s.CreationTimestamp, user.Spec.TokensValidAfter)
}

// TokenSignedOut reports whether a token that was issued at this time was issued before the
// User's last sign-out everywhere.
func TokenSignedOut(user *v1alpha1.User, issuedAt time.Time) bool {
	return notAfter(metav1.NewTime(issuedAt), user.Spec.TokensValidAfter)
}

// notAfter compares with a time that kcp stores in whole seconds. It counts all of that
// second as earlier, because nothing tells what came first in it.
func notAfter(t metav1.Time, stored *metav1.Time) bool {
	return stored != nil && !t.Truncate(time.Second).After(stored.Truncate(time.Second))
}

// CheckIdentity refuses a credential that kcp authenticates as another username than the one
// that the User signed up with: a claim of the credential has changed, and kcp would take
// the User for somebody else.
func CheckIdentity(u *v1alpha1.User, username string) error {
	if u.Spec.RBACIdentity == username {
		return nil
	}
	return errs.New(errs.Forbidden, "the username in this credential is not the one that you signed up with; ask a platform admin")
}

// SessionGroups returns the groups of the person of a Session, or none after the ID tokens
// that the identity provider named them in have expired: a person who left a group must not
// keep its rights for the life of the Session.
func SessionGroups(s *v1alpha1.Session, now time.Time) []string {
	if claimsCount(s, now) {
		return s.Spec.Groups
	}
	return nil
}

// SessionEmail returns the verified address of the person of a Session, under the same condition.
func SessionEmail(s *v1alpha1.Session, now time.Time) string {
	if claimsCount(s, now) {
		return s.Spec.Email
	}
	return ""
}

// claimsCount reports whether an ID token of a Session has not expired.
func claimsCount(s *v1alpha1.Session, now time.Time) bool {
	return slices.ContainsFunc(s.Spec.Tokens, func(t v1alpha1.SessionToken) bool { return now.Before(t.ExpiresAt.Time) })
}

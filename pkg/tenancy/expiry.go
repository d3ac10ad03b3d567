package tenancy

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// MinExpiry is the shortest time for which a Membership with an end can be given.
const MinExpiry = time.Minute

// Expiry is the end of a Membership by time. At is nil for one that does not end by time.
type Expiry struct{ At *metav1.Time }

// Ended reports whether a right with this end gives nothing any more. It ends in the second that is
// named.
func Ended(end *metav1.Time, now time.Time) bool { return end != nil && !now.Before(end.Time) }

// Living returns what the Memberships give now, each by EffectiveAt. It changes the slice.
func Living(memberships []*v1alpha1.Membership, now time.Time) []*v1alpha1.Membership {
	living := memberships[:0]
	for _, m := range memberships {
		if e := EffectiveAt(m, now); e != nil {
			living = append(living, e)
		}
	}
	clear(memberships[len(living):])
	return living
}

// LivingOf is Living for a list from kcp.
func LivingOf(list []v1alpha1.Membership, now time.Time) []*v1alpha1.Membership {
	all := make([]*v1alpha1.Membership, 0, len(list))
	for i := range list {
		all = append(all, &list[i])
	}
	return Living(all, now)
}

// ParseExpiry reads an end in RFC 3339. A fraction of a second is cut off, because kcp stores whole
// seconds. The error names field.
func ParseExpiry(field, text string, now time.Time) (*metav1.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, errs.UnprocessableField(field, "must be a time in RFC 3339, such as 2030-01-31T18:00:00Z")
	}
	end := metav1.NewTime(at.UTC().Truncate(time.Second))
	if end.Sub(now) < MinExpiry {
		return nil, errs.UnprocessableField(field, "must be at least a minute ahead")
	}
	if end.Year() > 9999 {
		return nil, errs.UnprocessableField(field, "must be before the year 10000")
	}
	return &end, nil
}

// ExpiryText is an end as people and the audit log read it.
func ExpiryText(end *metav1.Time) string {
	if end == nil {
		return "never"
	}
	return end.UTC().Format(time.RFC3339)
}

// EndsSooner reports whether a right with the first end does not last longer than one with the second.
func EndsSooner(a, b *metav1.Time) bool { return !endsLater(a, b) }

// endsLater reports whether a right with the first end lasts longer than one with the second.
func endsLater(a, b *metav1.Time) bool {
	return b != nil && (a == nil || a.After(b.Time))
}

// endsFirst orders ends by time, and none last.
func endsFirst(a, b *metav1.Time) int {
	switch {
	case endsLater(b, a):
		return -1
	case endsLater(a, b):
		return 1
	}
	return 0
}

// VoidChange reports whether an accepted change is not to be carried out any more: the rights of its
// author have ended by time, or it creates a Membership that has ended already.
func VoidChange(c v1alpha1.MembershipChange, now time.Time) bool {
	return Ended(c.ValidUntil, now) || c.UID == "" && EffectiveAt(ChangedMembership(nil, c), now) == nil
}

// WithExpired returns spec.membershipChanges of the Organization with the removals of Memberships that
// have ended by time, and of those parts of others that have. A change that was accepted for one of them before remains: it may have given
// the Membership another end.
func WithExpired(o *v1alpha1.Organization, ended []*v1alpha1.Membership, now time.Time) []v1alpha1.MembershipChange {
	changes := o.Spec.MembershipChanges
	for _, m := range ended {
		user, workspace := m.Spec.UserRef.Name, WorkspaceUUID(m)
		if c, ok := ChangeOf(o, user, workspace); ok && ChangeApplies(c, m) || len(changes) >= maxPendingChanges {
			continue
		}
		var c v1alpha1.MembershipChange
		if e := EffectiveAt(m, now); e != nil {
			c = given(e)
		}
		c.User, c.Workspace, c.UID, c.Generation = user, workspace, m.UID, m.Generation
		c.RequestedAt = DecisionTime(now)
		changes = append(without(changes, user, workspace), c)
	}
	return changes
}

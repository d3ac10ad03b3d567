package tenancy

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// PurgeAt is the end of the grace period of a deletion (O-8, O-13), or nil if none was
// requested.
func PurgeAt(requested *metav1.Time, grace time.Duration) *metav1.Time {
	if requested == nil {
		return nil
	}
	return &metav1.Time{Time: requested.Add(grace)}
}

// Deletable is the deletion state of an object that can be soft-deleted (O-8, O-13).
type Deletable struct {
	// Noun names the kind of object in messages.
	Noun string
	// Requested is the time of the request, or nil.
	Requested *metav1.Time
	// Removing is true when the grace period is over and the object is being removed.
	Removing bool
}

// Mark soft-deletes or undeletes the object: it returns the time of the request from now on, or nil
// for none. A repeated request does not extend the grace period.
func (d Deletable) Mark(deleted bool, now time.Time) (*metav1.Time, error) {
	switch {
	case d.Removing:
		return nil, errs.New(errs.NotFound, "the grace period of the "+d.Noun+" is over; it is being removed")
	case deleted == (d.Requested != nil):
		return d.Requested, nil
	case !deleted:
		return nil, nil
	}
	at := RequestedAt(now)
	return &at, nil
}

// CheckSeen refuses to undelete the object because of a later deletion than its author saw, whose request was at seen; nil
// is for none. Before a later deletion the author may have lost the right.
func (d Deletable) CheckSeen(seen *metav1.Time) error {
	if d.Removing || d.Requested == nil || seen != nil && !d.Requested.After(seen.Time) {
		return nil
	}
	return errs.New(errs.Conflict, "the "+d.Noun+" was deleted meanwhile; look at it, and repeat the request")
}

// RequestedAt is the time of a deletion request that is made now. It is rounded up to whole seconds,
// in which kcp stores it, so that no grace period is shorter than configured.
func RequestedAt(now time.Time) metav1.Time {
	return metav1.NewTime(now.UTC().Add(time.Second - 1).Truncate(time.Second))
}

// DeletionIndexed reports whether the rows of an index show the deletion state of an
// Organization, or of its Workspace if workspace is not empty. An index without a row for it
// counts as up to date.
func DeletionIndexed(entries []v1alpha1.MembershipIndexEntry, org, workspace string, deleted bool) bool {
	row := Row(entries, org, workspace)
	return row == nil || (row.SoftDeletedAt != nil) == deleted
}

// SeesDeleted reports whether the caller with these rows of an index is shown a deleted Workspace (O-13): those with a
// Membership in it, and admins of its Organization, who can undelete it without one (O-15). Default access does not suffice.
func SeesDeleted(entries []v1alpha1.MembershipIndexEntry, org, workspace string) bool {
	return OrgRole(entries, org).AtLeast(v1alpha1.RoleAdmin) || Row(entries, org, workspace) != nil
}

// DeletionFollowed reports whether the condition Active shows that the logical cluster was
// deactivated after a soft-delete, or cannot be, or was activated after an undelete (O-13).
func DeletionFollowed(conditions []metav1.Condition, deleted bool) bool {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionActive)
	if !deleted {
		return c != nil && c.Status == metav1.ConditionTrue
	}
	return c != nil && c.Status == metav1.ConditionFalse &&
		(c.Reason == v1alpha1.ReasonWaiting || c.Reason == v1alpha1.ReasonDeactivationForbidden)
}

// DeactivationForbidden reports whether the condition Active shows that kcp does not let
// the hub deactivate the logical cluster of something soft-deleted. Its RBAC must go then.
func DeactivationForbidden(conditions []metav1.Condition) bool {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionActive)
	return c != nil && c.Reason == v1alpha1.ReasonDeactivationForbidden
}

// RequireOwnership refuses callers who may not delete or undelete the Organization. Admins
// may; for a personal Organization only its owner. When the owner has left, every admin may:
// the last one could otherwise neither leave nor delete it.
func (s Scope) RequireOwnership(to string, ownerLeft bool) error {
	if s.Org.Spec.Personal && !ownerLeft && s.Org.CreatedBy() != s.User {
		return RoleTooLow("only the owner of this personal organization may " + to)
	}
	return s.RequireOrgAdmin(to)
}

// Heir selects the Membership to promote when the last admin of an Organization whose Membership does
// not end by time is removed: the oldest one of another member, preferably of a member who is active,
// and one without an end. ok is false if there is no other member. needed is false if there is
// another such admin. memberships are living.
func Heir(memberships []*v1alpha1.Membership, leaving string, active func(user string) bool) (heir *v1alpha1.Membership, ok, needed bool) {
	var others []*v1alpha1.Membership
	for _, m := range memberships {
		if m.Spec.Scope != v1alpha1.ScopeOrg || m.Spec.UserRef.Name == leaving || !m.DeletionTimestamp.IsZero() {
			continue
		}
		if LastingAdmin(m) && active(m.Spec.UserRef.Name) {
			return nil, false, false
		}
		others = append(others, m)
	}
	if len(others) == 0 {
		return nil, false, true
	}
	order := func(m *v1alpha1.Membership) (places int) {
		if !active(m.Spec.UserRef.Name) {
			places += 2
		}
		if hand := HandOf(m); hand.Role == "" || hand.ExpiresAt != nil {
			places++
		}
		return places
	}
	return slices.MinFunc(others, func(a, b *v1alpha1.Membership) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	}), true, true
}

// MayHaveMade reports whether a User can be the creator of an object with that creation
// time. A User of the same name who was created later is another person.
func MayHaveMade(u *v1alpha1.User, created metav1.Time) bool {
	return !u.CreationTimestamp.After(created.Time)
}

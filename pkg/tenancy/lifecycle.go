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

// PurgeAt is when the grace of a deletion ends (O-8, O-13); nil where none was
// asked for.
func PurgeAt(requested *metav1.Time, grace time.Duration) *metav1.Time {
	if requested == nil {
		return nil
	}
	return &metav1.Time{Time: requested.Add(grace)}
}

// Deletable is what becomes of something that people delete (O-8, O-13): what it is
// called, under which key the time of the request is kept and what that is, and
// whether the grace is over and it is being removed.
type Deletable struct {
	Noun, Key string
	Requested *metav1.Time
	Removing  bool
}

// Mark is what to write so that it is deleted, or not deleted any more; nothing where
// it is so already: asking again begins no new grace.
func (d Deletable) Mark(deleted bool, now time.Time) (map[string]any, error) {
	switch {
	case d.Removing:
		return nil, errs.New(errs.NotFound, "the grace of the "+d.Noun+" is over; it is being removed")
	case deleted == (d.Requested != nil):
		return nil, nil
	case !deleted:
		return map[string]any{d.Key: nil}, nil
	}
	return map[string]any{d.Key: RequestedAt(now)}, nil
}

// RequestedAt is how the time of a request for deletion is written down: in whole
// seconds, and rounded up, so that no grace is shorter than the operator said.
func RequestedAt(now time.Time) string {
	return now.UTC().Add(time.Second - 1).Truncate(time.Second).Format(time.RFC3339)
}

// DeletionIndexed tells whether the rows show an Org, or the Workspace of it where that
// is not empty, as deleted or not. Who has no row of it sees it right.
func DeletionIndexed(entries []v1alpha1.MembershipIndexEntry, org, workspace string, deleted bool) bool {
	row := Row(entries, org, workspace)
	return row == nil || (row.SoftDeletedAt != nil) == deleted
}

// DeletionFollowed tells whether kcp was told, too, that something is soft-deleted,
// or that it is not any more (O-13).
func DeletionFollowed(conditions []metav1.Condition, deleted bool) bool {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionActive)
	if !deleted {
		return c != nil && c.Status == metav1.ConditionTrue
	}
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonWaiting
}

// RequireOwnership refuses those who may not delete the Org or bring it back: all
// but its admins, and of a personal Org all but its owner.
func (s Scope) RequireOwnership(to string) error {
	if s.Org.Spec.Personal && s.Org.CreatedBy() != s.User {
		return errs.New(errs.Forbidden, "only the owner of this personal organization may "+to)
	}
	return s.RequireOrgAdmin(to)
}

// Heir is whose Membership in the Org is promoted where its last admin is cascaded
// away: the longest-standing other member's, of those who can act where there is
// one. ok is false where there is nobody; needed is false where there is another
// admin.
func Heir(memberships []v1alpha1.Membership, leaving string, active func(user string) bool) (heir v1alpha1.Membership, ok, needed bool) {
	var others []v1alpha1.Membership
	for _, m := range memberships {
		if m.Spec.Scope != v1alpha1.ScopeOrg || m.Spec.UserRef.Name == leaving || !m.DeletionTimestamp.IsZero() {
			continue
		}
		if m.Spec.Role == v1alpha1.RoleAdmin && active(m.Spec.UserRef.Name) {
			return v1alpha1.Membership{}, false, false
		}
		others = append(others, m)
	}
	if len(others) == 0 {
		return v1alpha1.Membership{}, false, true
	}
	order := func(m v1alpha1.Membership) int {
		if active(m.Spec.UserRef.Name) {
			return 0
		}
		return 1
	}
	return slices.MinFunc(others, func(a, b v1alpha1.Membership) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	}), true, true
}

// MayHaveMade tells whether a person can be who is named as the maker of something:
// the name of somebody who is gone may have become another's.
func MayHaveMade(u *v1alpha1.User, created metav1.Time) bool {
	return !u.CreationTimestamp.After(created.Time)
}

package tenancy

import (
	"cmp"
	"slices"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// IndexedMembership is one Membership of a User with the Organization or Workspace it is of. Workspace is
// nil if the scope is org.
type IndexedMembership struct {
	Org Org
	// FirstAdmin is the name of the User who was the first admin of the Organization.
	FirstAdmin string
	Workspace  *Workspace
	Role       v1alpha1.Role
	Manager    bool
}

const (
	// wholeNames is the number of rows up to which an index has whole display names.
	wholeNames = 500
	// maxIndexedName is the size of a display name in a longer index, in bytes of JSON. 2000 rows fit into
	// the 1.5 MiB that etcd takes then, whatever names others choose.
	maxIndexedName = 128
)

// IndexedName returns a display name as an index of so many rows has it. In a very long index long names
// are cut.
func IndexedName(name string, rows int) string {
	if rows <= wholeNames || len(name)*len(`\u003c`) <= maxIndexedName {
		return name
	}
	const cut = "…"
	size, whole := 0, 0
	for i, r := range name {
		if size <= maxIndexedName-len(cut) {
			whole = i
		}
		if size += encodedLen(r); size > maxIndexedName {
			return name[:whole] + cut
		}
	}
	return name
}

// encodedLen is the size of a character in JSON, as the API server writes it.
func encodedLen(r rune) int {
	switch r {
	case '<', '>', '&', '\u2028', '\u2029':
		return len(`\u003c`)
	case '"', '\\':
		return 2
	}
	return utf8.RuneLen(r)
}

// IndexEntries returns the rows of a UserMembershipIndex for the Memberships of a User (O-3,
// O-4), in a stable order.
func IndexEntries(places []IndexedMembership) []v1alpha1.MembershipIndexEntry {
	entries := make([]v1alpha1.MembershipIndexEntry, 0, len(places))
	for _, p := range places {
		e := v1alpha1.MembershipIndexEntry{
			OrgUUID:        p.Org.UUID(),
			OrgDisplayName: IndexedName(p.Org.Spec.DisplayName, len(places)),
			OrgCreatedAt:   p.Org.CreationTimestamp,
			OrgFirstAdmin:  p.FirstAdmin,
			Role:           p.Role,
			Manager:        p.Manager,
			Personal:       p.Org.Spec.Personal,
			SoftDeletedAt:  deletedAt(p.Org.Status.DeletionRequestedAt, p.Org.DeletionTimestamp),
		}
		if w := p.Workspace; w != nil {
			e.WorkspaceUUID, e.WorkspaceDisplayName, e.ClusterID = w.UUID, IndexedName(w.DisplayName, len(places)), w.ClusterID
			if e.SoftDeletedAt == nil {
				e.SoftDeletedAt = w.DeletionRequestedAt
			}
			if e.SoftDeletedAt == nil && w.Terminating {
				e.SoftDeletedAt = &w.CreatedAt
			}
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b v1alpha1.MembershipIndexEntry) int {
		return cmp.Or(cmp.Compare(a.OrgUUID, b.OrgUUID), cmp.Compare(a.WorkspaceUUID, b.WorkspaceUUID))
	})
	return entries
}

func deletedAt(requested, deletion *metav1.Time) *metav1.Time {
	if requested != nil {
		return requested
	}
	return deletion
}

// FirstAdmin is the name of the User shown as the first admin of an Organization (O-4): its
// creator or, if it has none, the User with the oldest admin Membership. memberships is
// called in the second case only, because an Organization can have very many.
func FirstAdmin(org Org, memberships func() []*v1alpha1.Membership) string {
	if by := org.CreatedBy(); by != "" {
		return by
	}
	var first *v1alpha1.Membership
	for _, m := range memberships() {
		if m.Spec.Scope != v1alpha1.ScopeOrg || !m.Spec.Role.AtLeast(v1alpha1.RoleAdmin) {
			continue
		}
		if first == nil || m.CreationTimestamp.Before(&first.CreationTimestamp) ||
			m.CreationTimestamp.Equal(&first.CreationTimestamp) && m.Name < first.Name {
			first = m
		}
	}
	if first == nil {
		return ""
	}
	return first.Spec.UserRef.Name
}

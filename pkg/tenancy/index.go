package tenancy

import (
	"cmp"
	"slices"

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
}

// IndexEntries returns the rows of a UserMembershipIndex for the Memberships of a User (O-3,
// O-4), in a stable order.
func IndexEntries(places []IndexedMembership) []v1alpha1.MembershipIndexEntry {
	entries := make([]v1alpha1.MembershipIndexEntry, 0, len(places))
	for _, p := range places {
		e := v1alpha1.MembershipIndexEntry{
			OrgUUID:        p.Org.UUID(),
			OrgDisplayName: p.Org.Spec.DisplayName,
			OrgCreatedAt:   p.Org.CreationTimestamp,
			OrgFirstAdmin:  p.FirstAdmin,
			Role:           p.Role,
			Personal:       p.Org.Spec.Personal,
			SoftDeletedAt:  deletedAt(p.Org.Status.DeletionRequestedAt, p.Org.DeletionTimestamp),
		}
		if w := p.Workspace; w != nil {
			e.WorkspaceUUID, e.WorkspaceDisplayName, e.ClusterID = w.UUID, w.DisplayName, w.ClusterID
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
		if m.Spec.Scope != v1alpha1.ScopeOrg || m.Spec.Role != v1alpha1.RoleAdmin {
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

package tenancy

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// Place is one Membership of a person and what it is in. Workspace is nil where
// the Membership's scope is the Org.
type Place struct {
	Org Org
	// FirstAdmin is the name of the User who was the Org's first admin.
	FirstAdmin string
	Workspace  *Workspace
	Role       v1alpha1.Role
}

// IndexEntries are the rows of the UserMembershipIndex of somebody who is in
// these places (O-3, O-4), in a stable order.
func IndexEntries(places []Place) []v1alpha1.MembershipIndexEntry {
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

// FirstAdmin is the name of the User shown as the Org's first admin (O-4): who
// asked for it, or, where it came from elsewhere, whose admin Membership is the
// oldest. Those are asked for only then, because an Org may have very many.
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

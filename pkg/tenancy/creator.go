package tenancy

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// Creator decides what the creator of an Organization or Workspace may read before their
// UserMembershipIndex has it: from the accepted request on, in every phase. It never gives
// more than the reconcilers are about to give, and nothing to a creator who was removed.
type Creator struct {
	Org       func(uuid string) (Org, bool)
	Workspace func(org, workspace string) (Workspace, bool)
	// Membership finds a Membership by name in the logical cluster of an Organization.
	Membership func(orgCluster, name string) (*v1alpha1.Membership, bool)
	// MembershipsAt lists those of the Organization itself if workspace is empty.
	MembershipsAt func(orgCluster, workspace string) []*v1alpha1.Membership
}

// OwnerLeft reports whether the person of a personal Organization is not a member of it any
// more.
func (c Creator) OwnerLeft(org Org) bool {
	m, ok := c.Membership(org.ClusterID, MembershipName(org.CreatedBy(), ""))
	return org.Spec.Personal && (!ok || !m.DeletionTimestamp.IsZero())
}

// ReadOrg returns an Organization and the role of its creator. The role is empty for a
// User who is not its creator.
func (c Creator) ReadOrg(u *v1alpha1.User, uuid string) (Org, v1alpha1.Role) {
	org, ok := c.Org(uuid)
	if !ok {
		return claimedOrg(u, uuid)
	}
	if org.CreatedBy() != u.Name || org.Spec.Personal || !MayHaveMade(u, org.CreationTimestamp) {
		return Org{}, ""
	}
	if org.ClusterID == "" {
		return org, v1alpha1.RoleAdmin
	}
	if m, ok := c.Membership(org.ClusterID, MembershipName(u.Name, "")); ok && m.DeletionTimestamp.IsZero() {
		return org, m.Spec.Role
	}
	// The reconciler adds the creator to an Organization without members, and to no other.
	if len(c.MembershipsAt(org.ClusterID, "")) == 0 {
		return org, v1alpha1.RoleAdmin
	}
	return Org{}, ""
}

func claimedOrg(u *v1alpha1.User, uuid string) (Org, v1alpha1.Role) {
	claim, ok := FindClaim(u.Spec.OrgClaims, uuid)
	if !ok || claim.Request == nil {
		return Org{}, ""
	}
	planned := ClaimedOrg(claim)
	planned.CreationTimestamp = claim.Request.RequestedAt
	return Org{Organization: planned}, v1alpha1.RoleAdmin
}

// ReadWorkspace is ReadOrg for a Workspace. The caller has checked that the User has a
// role in the Organization.
func (c Creator) ReadWorkspace(u *v1alpha1.User, org Org, uuid string) (Workspace, v1alpha1.Role) {
	ws, ok := c.Workspace(org.UUID(), uuid)
	if !ok {
		claim, ok := FindClaim(org.Spec.WorkspaceClaims, uuid)
		if !ok || claim.Request == nil {
			return Workspace{}, ""
		}
		ws = ClaimedWorkspace(org.UUID(), claim)
	}
	if ws.CreatedBy != u.Name || !MayHaveMade(u, ws.CreatedAt) {
		return Workspace{}, ""
	}
	if m, ok := c.Membership(org.ClusterID, MembershipName(u.Name, uuid)); ok && m.DeletionTimestamp.IsZero() {
		return ws, m.Spec.Role
	}
	if c, ok := ChangeOf(org.Organization, u.Name, uuid); ok && c.UID == "" {
		return ws, HighestRole(ChangedMembership(nil, c))
	}
	// The condition stays True once the creator was added.
	if !meta.IsStatusConditionTrue(ws.Status.Conditions, v1alpha1.ConditionFirstAdmin) {
		return ws, v1alpha1.RoleAdmin
	}
	return Workspace{}, ""
}

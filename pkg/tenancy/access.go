package tenancy

import (
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// RoleViewer is what an Org's member effectively is in its Workspaces where the
// Org's defaultAccess is view. No Membership has it.
const RoleViewer v1alpha1.Role = "viewer"

// Scope is who asks, for which Org and which Workspace of it, and with which
// right. It comes out of the caller's UserMembershipIndex alone.
type Scope struct {
	// User is the metadata.name of the caller's User.
	User string
	// PlatformAdmin is set for those named by --admin-user and --admin-group.
	PlatformAdmin bool
	Org           Org
	// Workspace is nil in the scope of an Org.
	Workspace *Workspace
	// OrgRole is the caller's role in the Org; empty for those who are only in
	// some of its Workspaces.
	OrgRole v1alpha1.Role
	// WorkspaceRole is the caller's effective role in the Workspace, Org admins
	// being admins (O-15); empty for none and in the scope of an Org.
	WorkspaceRole v1alpha1.Role
}

// OrgRole is the role that the rows of an index give in an Org; empty for none.
// A row of one of its Workspaces gives none there (O-15).
func OrgRole(entries []v1alpha1.MembershipIndexEntry, org string) v1alpha1.Role {
	if row := Row(entries, org, ""); row != nil {
		return row.Role
	}
	return ""
}

// Row is the row of an Org, or of the Workspace of it where that is not empty; nil for
// none.
func Row(entries []v1alpha1.MembershipIndexEntry, org, workspace string) *v1alpha1.MembershipIndexEntry {
	for i := range entries {
		if entries[i].OrgUUID == org && entries[i].WorkspaceUUID == workspace {
			return &entries[i]
		}
	}
	return nil
}

// InOrg tells whether any row, the Org's own or one of its Workspaces', is of
// the Org.
func InOrg(entries []v1alpha1.MembershipIndexEntry, org string) bool {
	for i := range entries {
		if entries[i].OrgUUID == org {
			return true
		}
	}
	return false
}

// WorkspaceRole is the effective role that the rows of an index give in a
// Workspace: an Org admin's (O-15), else the Workspace row's, else a viewer's
// where the Org lets its members look; empty for none.
func WorkspaceRole(entries []v1alpha1.MembershipIndexEntry, org, workspace string, access v1alpha1.DefaultAccess) v1alpha1.Role {
	var inOrg, inWorkspace v1alpha1.Role
	for i := range entries {
		if entries[i].OrgUUID != org {
			continue
		}
		switch entries[i].WorkspaceUUID {
		case "":
			inOrg = entries[i].Role
		case workspace:
			inWorkspace = entries[i].Role
		}
	}
	switch {
	case inOrg == v1alpha1.RoleAdmin:
		return v1alpha1.RoleAdmin
	case inWorkspace != "":
		return inWorkspace
	case inOrg != "" && access == v1alpha1.DefaultAccessView:
		return RoleViewer
	}
	return ""
}

// RequireOrgAdmin refuses everybody who is not admin in the Org itself.
func (s Scope) RequireOrgAdmin(to string) error {
	if s.OrgRole == v1alpha1.RoleAdmin {
		return nil
	}
	return errs.New(errs.Forbidden, "only an admin of this organization may "+to+"; ask one of its admins")
}

// RequireWorkspaceAdmin refuses everybody who is admin neither in the Workspace
// nor in its Org (O-15).
func (s Scope) RequireWorkspaceAdmin(to string) error {
	if s.WorkspaceRole == v1alpha1.RoleAdmin {
		return nil
	}
	return errs.New(errs.Forbidden, "only an admin of this workspace or of its organization may "+to+"; ask one of them")
}

// RequireWorkspaceCreation refuses those whom the Org's workspaceCreation leaves
// out (O-7). Being in one of its Workspaces is not being in the Org.
func (s Scope) RequireWorkspaceCreation() error {
	switch {
	case s.OrgRole == v1alpha1.RoleAdmin:
		return nil
	case s.OrgRole == "":
		return errs.New(errs.Forbidden, "only members of this organization may create workspaces in it; ask one of its admins to add you")
	case s.Org.Spec.WorkspaceCreation == v1alpha1.WhoAdmin:
		return errs.New(errs.Forbidden, "in this organization only admins may create workspaces (workspaceCreation: admin); ask one of its admins")
	}
	return nil
}

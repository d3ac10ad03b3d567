package tenancy

import (
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// Removes reports whether a change removes the Membership.
func Removes(c v1alpha1.MembershipChange) bool {
	return c.Role == "" && !c.Manager && len(c.Extra) == 0
}

// RoleText is what a Membership gives, in a sentence.
func RoleText(role v1alpha1.Role, manager bool) string {
	switch {
	case !manager:
		return string(role)
	case role == "":
		return "manager"
	}
	return string(role) + " and manager"
}

// IsManager reports whether the row of a Workspace in an index is that of a manager.
func IsManager(entries []v1alpha1.MembershipIndexEntry, org, workspace string) bool {
	row := Row(entries, org, workspace)
	return workspace != "" && row != nil && row.Manager
}

// managesOnly refuses a manager without a role what is in the Workspace.
func managesOnly() error {
	return RoleTooLow("managers of a workspace have no access to what is in it; ask an admin of it for a role")
}

// RequireContent refuses callers without a role in the Workspace who are its managers.
func (s Scope) RequireContent() error {
	if s.WorkspaceManager && s.WorkspaceRole == "" {
		return managesOnly()
	}
	return nil
}

// Manages reports whether the caller is a manager or an admin of the Workspace.
func (s Scope) Manages() bool {
	return s.WorkspaceManager || s.WorkspaceRole.AtLeast(v1alpha1.RoleAdmin)
}

// RequireWorkspaceManager refuses callers who are neither managers nor admins of the Workspace.
func (s Scope) RequireWorkspaceManager(to string) error {
	if s.Manages() {
		return nil
	}
	return RoleTooLow("only an admin or a manager of this workspace, or an admin of its organization, may " + to + "; ask one of them")
}

// RequireGrant refuses callers who may not give a role in the Workspace: managers give every role but admin.
func (s Scope) RequireGrant(role v1alpha1.Role, to string) error {
	if role.AtLeast(v1alpha1.RoleAdmin) {
		return s.RequireWorkspaceAdmin(to)
	}
	return s.RequireWorkspaceManager(to)
}

// CheckManager refuses what managers may not do to members: they make no admins, give neither sudo nor
// further roles, and do not change themselves. DecideEdit refuses changes of admins.
func (e MemberEdit) CheckManager() error {
	switch {
	case e.User == e.By:
		return RoleTooLow("managers may not change themselves; ask an admin of the workspace, or leave with DELETE …/memberships/me")
	case e.Role.AtLeast(v1alpha1.RoleAdmin):
		return RoleTooLow("managers may not make admins; ask an admin of the workspace")
	case e.Sudo != nil && *e.Sudo, e.Roles != nil && len(*e.Roles) > 0:
		return RoleTooLow("managers may give neither sudo nor further roles; ask an admin of the workspace")
	}
	return nil
}

// checkResult refuses an edit after which the Membership would give nothing, or something that needs a role.
func (e MemberEdit) checkResult(c v1alpha1.MembershipChange) error {
	switch {
	case e.Remove || c.Role != "" || e.Extra != nil && !e.NoRole:
		return nil
	case !c.Manager:
		return errs.InvalidField("role", "must be admin, member or viewer, but for a manager; a member who is to have nothing is removed")
	case c.Sudo:
		return errs.InvalidField("sudo", "needs a role")
	case len(c.Roles) > 0:
		return errs.InvalidField("roles", "need a role")
	}
	return nil
}

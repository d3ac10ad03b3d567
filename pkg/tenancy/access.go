package tenancy

import (
	"iter"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// Scope is the caller of a request, the Organization and Workspace it is about, and the
// caller's roles in them. It is computed from the caller's UserMembershipIndex.
type Scope struct {
	// User is the metadata.name of the caller's User, or the BotKey of a bot.
	User string
	// PlatformAdmin is true for people named by --admin-user or --admin-group.
	PlatformAdmin bool
	Org           Org
	// Workspace is nil for a request about the Organization.
	Workspace *Workspace
	// OrgRole is the caller's role in the Organization. It is empty for a caller who is only
	// a member of Workspaces.
	OrgRole v1alpha1.Role
	// WorkspaceRole is the caller's effective role in the Workspace: admin for admins of the
	// Organization (O-15). It is empty for a request about the Organization.
	WorkspaceRole v1alpha1.Role
	// WorkspaceManager is true for a manager of the Workspace, who can be without a role in it.
	WorkspaceManager bool
}

// WorkspaceUUID is the UUID of the Workspace, or empty for a request about the Organization.
func (s Scope) WorkspaceUUID() string {
	if s.Workspace == nil {
		return ""
	}
	return s.Workspace.UUID
}

// At returns the scope with the roles that the caller has in kcp: according to the version o of the
// Organization, and to the caller's Memberships, which were read after o was and are nil if there
// are none. A removal or demotion that was accepted counts before it is carried out, and a
// Membership that has ended by now gives nothing.
func (s Scope) At(o *v1alpha1.Organization, inOrg, inWorkspace *v1alpha1.Membership, now time.Time) Scope {
	var rows []v1alpha1.MembershipIndexEntry
	// A removal from everything counts, too, where the Membership of the Organization ended by time before it was carried
	// out, or was made after the request began.
	all, leaving := ChangeOf(o, s.User, "")
	leaving = leaving && all.Cascade && Removes(all) && (inOrg == nil || EffectiveAt(inOrg, now) == nil)
	for _, m := range []*v1alpha1.Membership{inOrg, inWorkspace} {
		if m == nil || !m.DeletionTimestamp.IsZero() {
			continue
		}
		e := EffectiveAt(m, now)
		if e == nil {
			continue
		}
		row := v1alpha1.MembershipIndexEntry{OrgUUID: o.Name, WorkspaceUUID: WorkspaceUUID(m), Role: e.Spec.Role, Manager: e.Spec.Manager}
		if c, ok := ChangeOf(o, s.User, row.WorkspaceUUID); ok && ChangeApplies(c, m) {
			after := EffectiveAt(ChangedMembership(m, c), now)
			if after == nil {
				after = &v1alpha1.Membership{}
			}
			if Lowers(row.Role, after.Spec.Role) {
				row.Role, leaving = after.Spec.Role, leaving || c.Cascade
			}
			row.Manager = row.Manager && after.Spec.Manager
		}
		if (row.Role != "" || row.Manager) && !leaving {
			rows = append(rows, row)
		}
	}
	s.Org.Organization, s.OrgRole = o, OrgRole(rows, o.Name)
	if s.Workspace != nil {
		s.WorkspaceRole = WorkspaceRole(rows, o.Name, s.Workspace.UUID, o.Spec.DefaultAccess)
		s.WorkspaceManager = IsManager(rows, o.Name, s.Workspace.UUID)
	}
	return s
}

// Standing is what entitles the author of a grant.
type Standing struct {
	// Until is when their right ends by time, or nil: what they grant must not be carried out from then on.
	Until *metav1.Time
	// ByGroup is the source of their right in the Organization where a group of the identity provider alone gives it,
	// or empty.
	ByGroup string
	// Lent is true if nothing that was given by hand suffices: the right is that of a request or a group, and ends with it.
	Lent bool
	// ByHand is when what was given by hand ceases to suffice by time, or nil: also where a request or a group lends more
	// for longer, people do not give themselves more than that.
	ByHand *metav1.Time
}

// Own is when what people make for themselves ends, or nil.
func (s Standing) Own() *metav1.Time {
	if s.Lent {
		return s.Until
	}
	return s.ByHand
}

// Prolonged reports whether a mapping of a group can give its maker, who is in the group, what lasts longer than their
// right. Who is admin by a group alone can map other groups of theirs, for less: one that makes them admin would stay
// when they leave the first.
func (s Standing) Prolonged(m v1alpha1.GroupMapping) bool {
	return s.Own() != nil && (s.ByGroup == "" || m.Role.AtLeast(v1alpha1.RoleAdmin))
}

// StandingOf returns what entitles the caller, who satisfies the rule may now.
func (s Scope) StandingOf(o *v1alpha1.Organization, inOrg, inWorkspace *v1alpha1.Membership, now time.Time, may func(Scope) error) Standing {
	standing := Standing{Until: s.EndOf(o, inOrg, inWorkspace, may), ByGroup: s.ByGroupAlone(o, inOrg, now, may)}
	handInOrg, handInWorkspace := byHandAlone(inOrg), byHandAlone(inWorkspace)
	if standing.Lent = may(s.At(o, handInOrg, handInWorkspace, now)) != nil; !standing.Lent {
		standing.ByHand = s.EndOf(o, handInOrg, handInWorkspace, may)
	}
	return standing
}

// EndOf returns when the rule may, which the caller satisfies now, ceases to hold by time, or nil.
func (s Scope) EndOf(o *v1alpha1.Organization, inOrg, inWorkspace *v1alpha1.Membership, may func(Scope) error) *metav1.Time {
	var ends []*metav1.Time
	for _, m := range []*v1alpha1.Membership{inOrg, inWorkspace} {
		if m == nil {
			continue
		}
		ends = append(ends, Ends(m)...)
		if c, ok := ChangeOf(o, s.User, WorkspaceUUID(m)); ok {
			ends = append(ends, Ends(ChangedMembership(m, c))...)
		}
	}
	slices.SortFunc(ends, endsFirst)
	for _, end := range ends {
		if end != nil && may(s.At(o, inOrg, inWorkspace, end.Time)) != nil {
			return end
		}
	}
	return nil
}

// OrgRole is the role in an Organization according to the rows of an index, or empty. Rows of
// its Workspaces do not count (O-15).
func OrgRole(entries []v1alpha1.MembershipIndexEntry, org string) v1alpha1.Role {
	if row := Row(entries, org, ""); row != nil {
		return row.Role
	}
	return ""
}

// Row returns the row of an Organization, or of its Workspace if workspace is not empty. It
// returns nil if there is none.
func Row(entries []v1alpha1.MembershipIndexEntry, org, workspace string) *v1alpha1.MembershipIndexEntry {
	for i := range entries {
		if entries[i].OrgUUID == org && entries[i].WorkspaceUUID == workspace {
			return &entries[i]
		}
	}
	return nil
}

// InOrg reports whether any row is of the Organization or of one of its Workspaces.
func InOrg(entries []v1alpha1.MembershipIndexEntry, org string) bool {
	for i := range entries {
		if entries[i].OrgUUID == org {
			return true
		}
	}
	return false
}

// WorkspaceRole is the effective role in a Workspace according to the rows of an index: that of the
// first of WorkspaceSources, or empty.
func WorkspaceRole(entries []v1alpha1.MembershipIndexEntry, org, workspace string, access v1alpha1.DefaultAccess) v1alpha1.Role {
	for s := range WorkspaceSources(entries, org, workspace, access) {
		return s.Role
	}
	return ""
}

// Through is the kind of a source of access to a Workspace.
type Through string

// The kinds of sources of access to a Workspace.
const (
	// ThroughOrgAdmin is the role admin in the Organization (O-15).
	ThroughOrgAdmin Through = "OrgAdmin"
	// ThroughMembership is a Membership in the Workspace.
	ThroughMembership Through = "Membership"
	// ThroughGroup and ThroughRequest are parts of it that were not given by hand.
	ThroughGroup   Through = "Group"
	ThroughRequest Through = "Request"
	// ThroughDefaultAccess is a Membership in an Organization with default access view.
	ThroughDefaultAccess Through = "DefaultAccess"
	// ThroughBot is the role of a Bot.
	ThroughBot Through = "Bot"
)

// Source is a source of access to a Workspace, and the role that it gives there.
type Source struct {
	Through Through
	Role    v1alpha1.Role
}

// WorkspaceSources are the sources of access to a Workspace according to the rows of an index. The first
// one is in effect: the role admin in the Organization, else the row of the Workspace, else the
// Organization's default access.
func WorkspaceSources(entries []v1alpha1.MembershipIndexEntry, org, workspace string, access v1alpha1.DefaultAccess) iter.Seq[Source] {
	return func(yield func(Source) bool) {
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
		admin := inOrg.AtLeast(v1alpha1.RoleAdmin)
		if admin && !yield(Source{ThroughOrgAdmin, v1alpha1.RoleAdmin}) {
			return
		}
		if inWorkspace.AtLeast(v1alpha1.RoleViewer) && !yield(Source{ThroughMembership, inWorkspace}) {
			return
		}
		if !admin && inOrg.AtLeast(v1alpha1.RoleViewer) && access == v1alpha1.DefaultAccessView {
			yield(Source{ThroughDefaultAccess, v1alpha1.RoleViewer})
		}
	}
}

// CauseRoleTooLow is the type of the cause of a refusal of somebody who is in the Organization or the
// Workspace, with a role that does not suffice.
const CauseRoleTooLow = "RoleTooLow"

// RoleTooLow refuses somebody who is there, with a role that does not suffice.
func RoleTooLow(message string) error {
	return errs.New(errs.Forbidden, message, errs.Cause{Type: CauseRoleTooLow, Message: message})
}

// RequireOrgAdmin refuses callers who are not admins of the Organization.
func (s Scope) RequireOrgAdmin(to string) error {
	if s.OrgRole.AtLeast(v1alpha1.RoleAdmin) {
		return nil
	}
	return RoleTooLow("only an admin of this organization may " + to + "; ask one of its admins")
}

// RequireWorkspaceAdmin refuses callers who are admins neither of the Workspace nor of its
// Organization (O-15).
func (s Scope) RequireWorkspaceAdmin(to string) error {
	if s.WorkspaceRole.AtLeast(v1alpha1.RoleAdmin) {
		return nil
	}
	return RoleTooLow("only an admin of this workspace or of its organization may " + to + "; ask one of them")
}

// RequireAdmin refuses callers who are not admins of what the request is about: of the Workspace, or of the Organization.
func (s Scope) RequireAdmin(to string) error {
	if s.Workspace != nil {
		return s.RequireWorkspaceAdmin(to)
	}
	return s.RequireOrgAdmin(to)
}

// RequireWorkspaceCreation refuses callers to whom spec.workspaceCreation does not permit to
// create Workspaces (O-7). A member of a Workspace is not a member of the Organization.
func (s Scope) RequireWorkspaceCreation() error {
	switch {
	case s.OrgRole.AtLeast(s.Org.Spec.WorkspaceCreation.Least()):
		return nil
	case s.OrgRole.AtLeast(v1alpha1.RoleMember):
		return RoleTooLow("in this organization only admins may create workspaces (workspaceCreation: admin); ask one of its admins")
	}
	return RoleTooLow("only members of this organization may create workspaces in it, and viewers may not; ask one of its admins")
}

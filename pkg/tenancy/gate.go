package tenancy

import (
	"slices"
	"strings"
	"time"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// CauseOrgWorkspace is the type of the cause of a refusal by O-10.
const CauseOrgWorkspace = "OrgWorkspaceNotDirectlyAccessible"

// Entry is the access of a User to a Workspace.
type Entry struct {
	// Workspace is the Workspace. Its ClusterID is not empty.
	Workspace Workspace
	// Role is the effective role of the User.
	Role v1alpha1.Role
	// Sudo is true if the Membership permits the User to impersonate SudoGroup.
	Sudo bool
	// SudoRequest is the ID of the AccessRequest that gave sudo, or empty.
	SudoRequest string
	// Roles are those of spec.roles of the Membership that are bound.
	Roles []v1alpha1.RoleRef
}

// Covers reports whether the entry grants all that an earlier one granted. If it does,
// streams opened with the earlier one can stay open.
func (e Entry) Covers(earlier Entry) bool {
	for _, r := range earlier.Roles {
		if !slices.Contains(e.Roles, r) {
			return false
		}
	}
	return e.Workspace.ClusterID == earlier.Workspace.ClusterID && e.Role.AtLeast(earlier.Role) && (e.Sudo || !earlier.Sudo)
}

// Gives reports whether the entry grants the rights of a role that was bound to the User
// for a Membership. role is in the form of RoleName. The ClusterRole for impersonation
// grants nothing by itself.
func (e Entry) Gives(role string) bool {
	if strings.HasPrefix(role, sudoPrefix) {
		return true
	}
	for _, r := range v1alpha1.Roles() {
		if clusterRoleOf(r) == role {
			return e.Role.AtLeast(r)
		}
	}
	return slices.ContainsFunc(e.Roles, func(r v1alpha1.RoleRef) bool { return RoleName(r) == role })
}

// BoundRoles returns the roles that the entry grants, in the form of RoleName.
func (e Entry) BoundRoles() []string {
	var names []string
	if e.Role != "" {
		names = append(names, clusterRoleOf(e.Role))
	}
	for _, r := range e.Roles {
		names = append(names, RoleName(r))
	}
	return names
}

// BoundRolesOf returns the roles that a Membership grants in a Workspace that it applies
// to, in the form of RoleName.
func BoundRolesOf(m *v1alpha1.Membership) []string {
	e := Entry{Role: HighestRole(m), Roles: m.Spec.Roles}
	if m.Spec.Scope == v1alpha1.ScopeOrg && !e.Role.AtLeast(v1alpha1.RoleAdmin) {
		e.Role = v1alpha1.RoleViewer
	}
	return e.BoundRoles()
}

// SudoGroup is the group that members with sudo may impersonate. It is bound to the admin
// role in that Workspace only.
func SudoGroup(workspace string) string { return "kedge:workspace:" + workspace + ":sudo" }

// Gate decides whether a User may access a logical cluster, for the proxy and for issuing
// credentials. Its functions read caches.
type Gate struct {
	Tree    Tree
	Cluster func(id string) Cluster
	Index   func(user string) []v1alpha1.MembershipIndexEntry
	Org     func(uuid string) (Org, bool)
	// Workspace finds a Workspace by its UUID and that of its Organization.
	Workspace func(org, workspace string) (Workspace, bool)
	// User finds a User by name.
	User func(name string) (*v1alpha1.User, bool)
	// Sudo returns spec.sudo of the Membership of a User in a Workspace.
	Sudo func(user, org, workspace string) bool
	// SudoRequest returns the ID of the AccessRequest that gave it, or nothing. It can be nil.
	SudoRequest func(user, org, workspace string) string
	// Roles returns those of spec.roles of that Membership that are bound. It can be nil for
	// a gate that opens no streams.
	Roles func(user, org, workspace string) []v1alpha1.RoleRef
	// Ending reports whether a part of a Membership of the User in the Organization or the Workspace has ended by
	// time and is not removed yet: kcp may still authorize by it. It can be nil.
	Ending func(user, org, workspace string) bool
}

// Enter returns the access of a User to the child Workspace that cluster, an ID or a path,
// refers to. user is the metadata.name of a User whom MayAct accepts. It refuses:
//
//   - workspaces of the hub and of Organizations, with the cause
//     OrgWorkspaceNotDirectlyAccessible (O-10). Their paths are no secret, so every caller
//     gets this answer for a path, whether the Organization exists or not;
//   - unknown clusters and those of other tenants, with the same answer, so that it does not
//     reveal which of the two a cluster is;
//   - soft-deleted Workspaces (O-13), and, with Unavailable, those that kcp has not scheduled, and
//     those in which a higher right of the User has just ended by time. Only callers with a role in
//     the Workspace get these answers.
func (g Gate) Enter(user, cluster string) (Entry, error) {
	// The User is checked again, because streams outlive the request that authenticated it.
	if u, ok := g.User(user); !ok {
		return Entry{}, foreign()
	} else if err := MayAct(u, false); err != nil {
		return Entry{}, err
	}
	orgUUID, wsUUID, isPath := g.Tree.ParseWorkspacePath(cluster)
	entries := g.Index(user)
	if !isPath {
		if g.Tree.IsAbovePath(cluster) || g.Tree.IsHubPath(cluster) {
			return Entry{}, notDirectly()
		}
		if !IsClusterID(cluster) {
			return Entry{}, errs.New(errs.NotFound, "there is no cluster of that name; use the ID or the full path of a workspace")
		}
		switch c := g.Cluster(cluster); c.Kind {
		case ClusterHub:
			return Entry{}, notDirectly()
		case ClusterOrg:
			if InOrg(entries, c.OrgUUID) {
				return Entry{}, notDirectly()
			}
			return Entry{}, foreign()
		case ClusterWorkspace:
			orgUUID, wsUUID = c.OrgUUID, c.WorkspaceUUID
		default:
			return Entry{}, foreign()
		}
	}
	org, ok := g.Org(orgUUID)
	if !ok {
		return Entry{}, foreign()
	}
	ws, ok := g.Workspace(orgUUID, wsUUID)
	role := WorkspaceRole(entries, orgUUID, wsUUID, org.Spec.DefaultAccess)
	switch {
	case ok && role == "" && IsManager(entries, orgUUID, wsUUID) && (isPath || ws.ClusterID == cluster):
		return Entry{}, managesOnly()
	case !ok || !role.AtLeast(v1alpha1.RoleViewer):
		return Entry{}, foreign()
	case !isPath && ws.ClusterID != cluster:
		// The Workspace was recreated with another logical cluster.
		return Entry{}, foreign()
	case org.Deleted() || ws.Deleted():
		return Entry{}, errs.New(errs.Forbidden, Gone(org, &ws))
	case ws.ClusterID == "":
		return Entry{}, errs.New(errs.Unavailable, "the workspace is still being created; try again").After(time.Second)
	case g.Ending != nil && g.Ending(user, orgUUID, wsUUID):
		return Entry{}, errs.New(errs.Unavailable,
			"a right of yours to this workspace has just ended and is being removed; "+
				"try again with the rights that you still have").After(time.Second)
	}
	entry := Entry{Workspace: ws, Role: role, Sudo: g.Sudo(user, orgUUID, wsUUID)}
	if entry.Sudo && g.SudoRequest != nil {
		entry.SudoRequest = g.SudoRequest(user, orgUUID, wsUUID)
	}
	if g.Roles != nil {
		entry.Roles = g.Roles(user, orgUUID, wsUUID)
	}
	return entry, nil
}

func notDirectly() error {
	return errs.New(errs.Forbidden,
		"this workspace belongs to the hub and is never reached directly; work in a child workspace, and manage organizations through the API under /api/orgs",
		errs.Cause{Type: CauseOrgWorkspace, Message: "only child workspaces of an organization can be reached"})
}

func foreign() error {
	return errs.New(errs.Forbidden, "you have no access to this cluster; ask an admin of the workspace or of its organization to add you")
}

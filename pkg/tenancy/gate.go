package tenancy

import (
	"slices"
	"strings"
	"time"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// CauseOrgWorkspace is the cause of a refusal under O-10.
const CauseOrgWorkspace = "OrgWorkspaceNotDirectlyAccessible"

// Entry is a person's way into a Workspace.
type Entry struct {
	// Workspace's ClusterID is set.
	Workspace Workspace
	// Role is the person's effective one.
	Role v1alpha1.Role
	// Sudo says that the person's Membership in the Workspace lets them
	// impersonate its SudoGroup.
	Sudo bool
	// Roles are the further ClusterRoles of that Membership.
	Roles []v1alpha1.NamedRef
}

// Covers tells whether the entry still gives all that an earlier one gave: what
// was opened with that one may stay open.
func (e Entry) Covers(earlier Entry) bool {
	for _, r := range earlier.Roles {
		if !slices.Contains(e.Roles, r) {
			return false
		}
	}
	return e.Workspace.ClusterID == earlier.Workspace.ClusterID && rank(e.Role) >= rank(earlier.Role) && (e.Sudo || !earlier.Sudo)
}

// Gives tells whether the entry gives what a ClusterRole gives that was bound to the
// person for a Membership. What lets them impersonate gives nothing by itself.
func (e Entry) Gives(clusterRole string) bool {
	if strings.HasPrefix(clusterRole, sudoPrefix) {
		return true
	}
	for _, role := range []v1alpha1.Role{RoleViewer, v1alpha1.RoleMember, v1alpha1.RoleAdmin} {
		if clusterRoleOf(role) == clusterRole {
			return rank(e.Role) >= rank(role)
		}
	}
	return slices.Contains(e.Roles, v1alpha1.NamedRef{Name: clusterRole})
}

// SudoGroup is the group that members with sudo may impersonate in a Workspace,
// and that has a meaning there only.
func SudoGroup(workspace string) string { return "kedge:workspace:" + workspace + ":sudo" }

// Gate decides who enters which logical cluster, for the proxy and for
// credentials alike. It reads memory only.
type Gate struct {
	Tree    Tree
	Cluster func(id string) Cluster
	Index   func(user string) []v1alpha1.MembershipIndexEntry
	Org     func(uuid string) (Org, bool)
	// Workspace finds a Workspace by the UUIDs of its Org and its own.
	Workspace func(org, workspace string) (Workspace, bool)
	// User finds a person.
	User func(name string) (*v1alpha1.User, bool)
	// Sudo tells whether the Membership of a person in a Workspace has sudo.
	Sudo func(user, org, workspace string) bool
	// Roles are the further ClusterRoles of that Membership; nil for a gate that no
	// streams are opened through.
	Roles func(user, org, workspace string) []v1alpha1.NamedRef
}

// Enter returns the person's way into the Workspace that cluster, an ID or a path,
// stands for. user is the metadata.name of a User, who must be one that MayAct lets
// act. Everything but a child Workspace of theirs is refused: what belongs to the
// hub or is an Org's own with the cause OrgWorkspaceNotDirectlyAccessible (O-10), the
// unknown and the foreign alike, so that nobody learns of either; what is
// soft-deleted (O-13) with that reason, and what kcp has not placed yet with
// Unavailable, both to those alone who have a role in it. Paths of the hub's own workspaces are no secret and get their
// reason from everybody, an Org's path whether there is such an Org or not.
func (g Gate) Enter(user, cluster string) (Entry, error) {
	// A stream outlives the request that authenticated it.
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
	case !ok || role == "":
		return Entry{}, foreign()
	case !isPath && ws.ClusterID != cluster:
		// The name was given to another cluster meanwhile: what was asked for is gone.
		return Entry{}, foreign()
	case org.Deleted() || ws.Deleted():
		return Entry{}, errs.New(errs.Forbidden, "the workspace, or its organization, was deleted; until its grace ends it can be undeleted")
	case ws.ClusterID == "":
		e := errs.New(errs.Unavailable, "the workspace is still being made; try again")
		e.RetryAfter = time.Second
		return Entry{}, e
	}
	entry := Entry{Workspace: ws, Role: role, Sudo: g.Sudo(user, orgUUID, wsUUID)}
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

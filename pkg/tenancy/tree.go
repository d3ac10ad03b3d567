package tenancy

import (
	"fmt"
	"regexp"
	"strings"
)

// The names of the WorkspaceTypes and APIExports of the tree.
const (
	// TypeOrganization is the WorkspaceType of an Organization's own workspace. Only the
	// hub uses it (O-10).
	TypeOrganization = "organization"
	// TypeWorkspace is the WorkspaceType of child Workspaces, in which tenants work.
	TypeWorkspace = "workspace"
	// ExportTenancy is the APIExport of the API group of the hub.
	ExportTenancy = "tenancy.kedge.faros.sh"
	// ExportAccess is an APIExport without APIs. The hub watches its objects in child
	// Workspaces through the permission claims of this export.
	ExportAccess = "access.kedge.faros.sh"
)

var rootPattern = regexp.MustCompile(`^root(:[a-z][a-z0-9-]{0,61}[a-z0-9])+$`)

// Tree derives the paths of all workspaces from the path of the root workspace.
type Tree struct{ root string }

// NewTree returns the tree below root, an absolute path such as "root:kedge".
func NewTree(root string) (Tree, error) {
	if !rootPattern.MatchString(root) {
		return Tree{}, fmt.Errorf("%q is not a workspace path below root, such as root:kedge", root)
	}
	return Tree{root: root}, nil
}

// Root is the path of the root workspace of the hub.
func (t Tree) Root() string { return t.root }

// Holds reports whether path is the root workspace of the hub or below it.
func (t Tree) Holds(path string) bool { return path == t.root || strings.HasPrefix(path, t.root+":") }

// Users is the path of the workspace of Users and UserMembershipIndexes.
func (t Tree) Users() string { return t.root + ":users" }

// Providers is the path of the workspace of the APIExports.
func (t Tree) Providers() string { return t.root + ":providers" }

// Orgs is the path of the workspace of Organizations.
func (t Tree) Orgs() string { return t.root + ":orgs" }

// Org is the path of the workspace of an Organization.
func (t Tree) Org(org string) string { return t.Orgs() + ":" + org }

// Workspace is the path of a child Workspace.
func (t Tree) Workspace(org, workspace string) string { return t.Org(org) + ":" + workspace }

// ParseWorkspacePath parses the path of a child Workspace, {root}:orgs:{uuid}:{uuid}. ok is
// false for any other path, such as that of an Organization's workspace.
func (t Tree) ParseWorkspacePath(path string) (org, workspace string, ok bool) {
	rest, ok := strings.CutPrefix(path, t.Orgs()+":")
	if !ok {
		return "", "", false
	}
	org, workspace, ok = strings.Cut(rest, ":")
	if !ok || !IsUUID(org) || !IsUUID(workspace) {
		return "", "", false
	}
	return org, workspace, true
}

// IsHubPath reports whether path is a workspace that only the hub may use (O-10): the root
// workspace, users, providers, orgs, or the workspace of an Organization.
func (t Tree) IsHubPath(path string) bool {
	if path == t.root || path == t.Users() || path == t.Providers() || path == t.Orgs() {
		return true
	}
	org, ok := strings.CutPrefix(path, t.Orgs()+":")
	return ok && IsUUID(org)
}

// IsAbovePath reports whether path is a workspace of kcp above the root workspace.
func (t Tree) IsAbovePath(path string) bool {
	return path == "root" || strings.HasPrefix(t.root, path+":")
}

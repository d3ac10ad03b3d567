package tenancy

import (
	"fmt"
	"regexp"
	"strings"
)

// Names of the WorkspaceTypes and of the exports of the tree.
const (
	// TypeOrganization is the WorkspaceType of an Org's own workspace, which the
	// hub alone touches (O-10).
	TypeOrganization = "organization"
	// TypeWorkspace is the WorkspaceType of what tenants work in.
	TypeWorkspace = "workspace"
	// ExportTenancy is the APIExport of the tenancy model.
	ExportTenancy = "tenancy.kedge.faros.sh"
	// ExportAccess is the APIExport without APIs of its own through which the
	// hub watches what it keeps in child Workspaces.
	ExportAccess = "access.kedge.faros.sh"
)

var rootPattern = regexp.MustCompile(`^root(:[a-z][a-z0-9-]{0,61}[a-z0-9])+$`)

// Tree knows the path of every workspace of the platform.
type Tree struct{ root string }

// NewTree returns the tree under root, an absolute path below "root" such as
// "root:kedge".
func NewTree(root string) (Tree, error) {
	if !rootPattern.MatchString(root) {
		return Tree{}, fmt.Errorf("%q is not a workspace path below root, such as root:kedge", root)
	}
	return Tree{root: root}, nil
}

// Root is the path of the hub's own root workspace.
func (t Tree) Root() string { return t.root }

// Holds tells whether a workspace path is the hub's root workspace or below it.
func (t Tree) Holds(path string) bool { return path == t.root || strings.HasPrefix(path, t.root+":") }

// Users is the path of the workspace of Users and UserMembershipIndexes.
func (t Tree) Users() string { return t.root + ":users" }

// Providers is the path of the workspace of the exports.
func (t Tree) Providers() string { return t.root + ":providers" }

// Orgs is the path of the workspace of Organizations.
func (t Tree) Orgs() string { return t.root + ":orgs" }

// Org is the path of an Org's own workspace.
func (t Tree) Org(org string) string { return t.Orgs() + ":" + org }

// Workspace is the path of a child Workspace.
func (t Tree) Workspace(org, workspace string) string { return t.Org(org) + ":" + workspace }

// Initializer is the name under which kcp knows the hub's initializer.
func (t Tree) Initializer() string { return t.root + ":" + TypeOrganization }

// ParseWorkspacePath takes {root}:orgs:{uuid}:{uuid} apart. ok is false for
// everything else, the path of an Org workspace among it.
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

// IsHubPath tells whether path names a workspace that only the hub may touch
// (O-10): the root workspace, users, providers, orgs, or an Org's own.
func (t Tree) IsHubPath(path string) bool {
	if path == t.root || path == t.Users() || path == t.Providers() || path == t.Orgs() {
		return true
	}
	org, ok := strings.CutPrefix(path, t.Orgs()+":")
	return ok && IsUUID(org)
}

// IsAbovePath tells whether path is one of kcp's own workspaces above the tree.
func (t Tree) IsAbovePath(path string) bool {
	return path == "root" || strings.HasPrefix(t.root, path+":")
}

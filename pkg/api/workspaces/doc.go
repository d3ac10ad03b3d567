// Package workspaces serves /api/orgs/{org}/workspaces: the Workspaces of an Organization
// that the caller can access, their creation, renaming, deletion and undeletion.
package workspaces

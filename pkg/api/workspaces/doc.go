// Package workspaces answers under /api/orgs/{org}/workspaces: the Workspaces of
// an Org that the caller can enter.
package workspaces

// Package members serves the members of an Org and of a Workspace. Both are
// Memberships in the Org's own workspace; their rules differ.
package members

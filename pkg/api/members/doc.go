// Package members serves the members of an Organization and of a Workspace. Both are
// Membership objects in the workspace of the Organization, with different rules.
//
// Removing or demoting a member of an Organization is recorded on the Organization and
// carried out by its reconciler (O-9). Members of a Workspace are changed directly: the
// admins of the Organization are admins there in any case (O-15).
package members

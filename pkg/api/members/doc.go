// Package members serves the members of an Organization and of a Workspace. Both are
// Membership objects in the workspace of the Organization, with different rules.
//
// Every change of a Membership, of either scope, is recorded on the Organization and carried out
// by its reconciler (O-9): what gives rights and what takes them away have one order, and the
// author of a grant is judged at the version of the Organization that accepts it.
package members

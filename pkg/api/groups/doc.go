// Package groups serves the mappings of groups of the identity provider: each gives the members of a group a role in an
// Organization or in one of its Workspaces.
//
// # Decisions
//
//   - A mapping is a field of the Organization, written by compare-and-swap in one order with all other grants and
//     removals, and judged for the rights of its author at that version.
//   - The package writes no Membership. The controller of Organizations makes parts of Memberships of the mappings and of
//     the groups that credentials say; gate, bindings and revocation know only these.
//   - An answer says how many people a mapping lets in, and not whom.
package groups

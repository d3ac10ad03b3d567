// Package access reconciles the RBAC of people in child Workspaces. It derives the bindings from the
// Memberships of the Organization (O-15): one binding per User and role, so that no subject of a
// binding is ever overwritten, and the role and binding that permit sudo. It binds a role of spec.roles
// only while tenancy.RoleSource permits it. Rights that ended are
// removed before others are added.
package access

// Package access reconciles the RBAC of people in child Workspaces. It derives the bindings from the
// Memberships of the Organization (O-15). There is one binding per User and role, so that no write
// changes the subjects of a binding, and a role and a binding that permit sudo. A role of spec.roles
// is bound only while tenancy.RoleSource permits it. Ended rights are removed before new ones are
// added.
package access

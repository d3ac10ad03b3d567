// Package membership reconciles the status of Memberships: whether the User exists, and which
// of spec.roles are bound. It writes nothing else: the access controller writes bindings, the
// membershipindex controller writes index rows.
package membership

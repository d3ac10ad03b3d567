// Package membership reports in the status of a Membership whether its User exists and
// which of spec.roles are bound. It writes nothing else: the access controller writes the
// bindings, and the membershipindex controller writes the index.
package membership

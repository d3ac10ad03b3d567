// Package users serves /api/users: the caller's own account and Memberships, the search for
// people to invite, and the deletion of accounts.
package users

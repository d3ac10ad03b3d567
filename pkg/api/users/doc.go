// Package users answers under /api/users: who the caller is, and what they are
// in.
package users

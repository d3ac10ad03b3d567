// Package user reconciles Users: it creates the personal Organization and the default
// Workspace of a new User and the Organizations that a User claimed (O-5), and removes a
// deleted User (O-8).
//
// The personal Organization and the default Workspace are created at most one time. The
// controller reads the User from kcp before it creates them: to a stale cache, an object that
// was created and deleted meanwhile looks as if it had never existed.
package user

// Package user reconciles Users: the personal Organization and the default Workspace of
// a new User, the Organizations that a User claimed (O-5), and the end of a deleted User
// (O-8).
//
// A personal Organization and a default Workspace are created one time. Before they are
// created the User is read from kcp: in a cache that is behind, an object that was
// created and deleted meanwhile looks as if it had never existed.
package user

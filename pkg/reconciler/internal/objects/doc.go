// Package objects has the repositories with which steps read and write objects: Repository for any
// kind, with more methods for Memberships, Bots and Workspaces, and RBAC, the one writer of derived
// roles and bindings.
//
// Get and InCluster of a repository read the cache. Every other method asks kcp itself. An error
// that another writer causes (Conflict, AlreadyExists, NotFound) comes back as controller.ErrRetry:
// the next pass reads the newer object from the cache.
package objects

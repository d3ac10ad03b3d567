// Package store writes Users, Organizations, Workspaces, Memberships, Bots, Sessions and the
// Secrets about logins to kcp for the request handlers. Each write is one object; objects
// derived from these are written by the reconcilers. Errors of kcp are converted to
// *errs.Error, whose text is safe for clients.
//
// # Decisions
//
//   - Every change is a compare-and-swap on one object: the caller edits a copy of what it
//     saw, the patch is the difference, and the edit is made again on the newer object after
//     every conflict. Two replicas cannot both take the last place of a quota.
//   - If-Match is part of the write: the patch contains the resource version that was
//     compared, so that it is exact across replicas.
//   - The answer to an attempt can be lost. A retry therefore succeeds if it finds the object
//     as its own first attempt would have created, patched or deleted it.
//   - A User's name is derived from the identity and kcp accepts each name once, so that
//     concurrent sign-ups on several replicas create one User.
package store

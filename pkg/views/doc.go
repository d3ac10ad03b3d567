// Package views holds the hub's caches: people, Memberships, the tree of Organizations and
// Workspaces, and listers of all other kinds that the hub watches. Every replica fills them
// by one wildcard watch per kind and endpoint. No method calls kcp.
//
// # Changes
//
// Views publish their changes, and nobody else subscribes to informers. For every event
// of an informer the views change first. Then the change is published to the subscribers
// of its kind (OnUser, OnOrganization, …) with the set of changed fields. Finally the
// callers of Await wake. The order of subscriptions has no meaning, because all views
// have changed before the first subscriber is called.
//
// A subscriber gets the objects that exist at the start, too, as additions. It subscribes
// before the informers run and must not block. Changes of one kind come one after the
// other, changes of several kinds at the same time.
//
// An object of a kind that belongs in one logical cluster of the hub (User, Organization,
// UserMembershipIndex, Session) is ignored when it comes from another one.
//
// # Waiting
//
// A handler that has written to kcp waits with Await until the caches show the write. It
// names the objects that it waits for by tenancy.Refs, and a change wakes only the callers
// that named an affected object: a binding affects its User, its Workspace and the
// Organization; an Organization affects itself, its Workspaces and its creator. A waiting
// caller costs a channel and a map entry for each Ref, and no goroutine.
package views

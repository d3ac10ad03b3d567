// Package views holds the hub's caches: one Kind for each kind that the hub watches, and what is
// looked up across kinds: people, rights, the tree of Organizations and Workspaces. Every replica
// fills them by one wildcard watch per kind and endpoint. No method calls kcp.
//
// # A kind
//
// kinds.go has one row for each kind. It says
//
//   - which objects are watched: the resource, which follows from the type, and a selector by labels;
//   - what is cached of an object: a transform, and for Memberships an encoding;
//   - to which logical cluster the objects belong. Users, Organizations, UserMembershipIndexes and
//     Sessions belong in one of the hub's own; an object from another one is ignored;
//   - the indexes: keys that follow from an object, by which the views find it (people.go, sessions.go,
//     bots.go, catalog.go, enabled.go);
//   - what else the views derive from a change: the tree (topology.go) and rights (memberships.go);
//   - the tenancy.Refs of those who wait for a change.
//
// The row is the lister (v.Bots.Get, InCluster, All, Keys), the subscription (v.Bots.OnChange,
// Follow) and the view in metrics.
//
// # Changes
//
// Views publish their changes, and nobody else subscribes to informers. For every event
// of an informer the views change first. Then the change is published to the subscribers
// of its kind. Finally the callers of Await wake. The order of subscriptions has no meaning,
// because all views have changed before the first subscriber is called.
//
// A Change has the object before and after. A subscriber names the fields that it follows from by a
// func that returns them, and Change.Moved, Ends or Differs compares them. OnChange is for those who
// follow from everything, and for those who compare in several ways.
//
// A subscriber gets the objects that exist at the start, too, as additions. It subscribes
// before Run and must not block. Changes of one kind come one after the
// other, changes of several kinds at the same time.
//
// # Ends by time
//
// A Membership with an end gives nothing from that second on, on every replica and without a write:
// what the views answer about Memberships and rights compares the end with kcp's time. Within a
// fifth of a second subscribers are told of it as of a removal. The object stays in the cache of
// the Kind until the controller of its Organization has removed it.
//
// # Waiting
//
// A handler that has written to kcp waits with Await until the caches show the write. It
// names the objects that it waits for by tenancy.Refs, and a change wakes only the callers
// that named an affected object: a binding affects its User, its Workspace and the
// Organization; an Organization affects itself, its Workspaces and its creator. A waiting
// caller costs a channel and a map entry for each Ref, and no goroutine.
package views

// Package views is the hub's memory: people, memberships and topology, and listers of
// everything else that it watches. Every replica fills it by one wildcard watch per kind
// and endpoint. No method calls kcp.
//
// # Changes
//
// Views publish their changes, and nobody else subscribes to informers. For every event
// of an informer the views change first. Then the change is published to the subscribers
// of its kind (OnUser, OnOrganization, …) with the set of fields that moved. At last the
// callers of Await are woken. The order of subscriptions means nothing, because every
// subscriber finds every view changed.
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
// A handler that has written to kcp waits with Await until memory has followed. It names
// what it waits for by tenancy.Refs, and a change wakes those callers only that name
// something which it touches: a binding touches its User, its Workspace and the Org, an
// Organization touches itself, its Workspaces and its creator. A waiting caller takes a
// channel and a map entry for each Ref, both until it returns, and no goroutine.
package views

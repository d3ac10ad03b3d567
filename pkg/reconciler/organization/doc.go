// Package organization reconciles Organizations: the kcp Workspace of an Organization,
// the Membership of its first admin, and its APIBindings. It also creates claimed child
// Workspaces, carries out the accepted changes of Memberships and Bots, deactivates what is soft-deleted and
// removes it after the grace period.
//
// kcp creates the Workspace with the hub's initializer and keeps it from becoming Ready
// until the hub removes the initializer. The hub does so after the first admin's
// Membership exists. So an Organization that is Ready has all its parts (O-11).
package organization

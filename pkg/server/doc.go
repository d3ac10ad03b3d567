// Package server wires the hub: flags become Options, Options.Complete returns a Config, and Run
// runs a hub with it until its context ends.
//
// The files are read in this order:
//
//   - options.go: the flags, and the Config that Complete makes of them (package options)
//   - server.go: Run, from the listeners to the stop
//   - wiring.go: the steps of a start, from the clients of kcp to the open API
//   - controllers.go: the controllers of the leader, and their settings
//   - authentication.go: how people and bots are authenticated, and log in
//   - api.go, routes.go: what the API and the proxy are made of, and the routes
//   - local.go, verify.go: the socket of the operator, and the comparison that it answers with
//   - restored.go, replay.go, orphans.go, shared.go: restore mode, for a data folder and for an external kcp
//   - restore.go, restore_external.go: the commands that leave the two to it
//   - serving.go, rotation.go: the listeners and the drain, and files that are replaced meanwhile
//
// A start goes in this order: the listener with the health probes, the embedded kcp, the tree
// (package bootstrap), the informers and views, the controllers, the routes. A stop goes in the
// reverse order: the listener drains, then controllers and views stop, then kcp.
//
// # Restore mode
//
// A hub whose data folder or external kcp was restored ends what ended after the backup (package restore) between the
// bootstrap of the tree and all else. It does so with an assembly of its own, which has the controllers that end things and no
// routes, and which is gone before the one that serves is built. So the caches by which requests are judged are filled
// after the last ending was written: none of them can be behind it, and no controller that gives something has run
// before. The assembly that serves opens when the bindings in kcp have followed, too.
//
// Before an external kcp, the order is in kcp (package external). Every replica reads it at its start, and again each
// second. In restore mode all run that assembly, and the leader's carries out the order. The others wait until it is
// written down that nothing is left, and then fill their caches. Where a Lease is lost in between, two replicas carry out
// the same Steps, which only take away.
//
// Of the controllers that run meanwhile, organization carries out what it has accepted, endings and grants alike, in
// their order: the Memberships that the backup has promised are made, so that an ending finds them. It makes claimed
// Workspaces for the same reason. It makes a creator the first admin of an Organization; the endings take the creator's
// name from the Organization where that would give something back. It promotes nobody: user does, in a purge, and does
// not run. workspace runs because it deactivates in kcp what is deleted, and marks what has expired. What lets people in
// as something new, or only makes things (user, invitation, catalogentry, customresources, spares, billing), waits.
//
// A purge cannot be taken back, and its time has come earlier than people could expect: all are held until the operator
// lets them run. A removal that began before the backup goes on, because nothing undoes it.
package server

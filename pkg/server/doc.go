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
//   - serving.go, rotation.go: the listeners and the drain, and files that are replaced meanwhile
//
// A start goes in this order: the listener with the health probes, the embedded kcp, the tree
// (package bootstrap), the informers and views, the controllers, the routes. A stop goes in the
// reverse order: the listener drains, then controllers and views stop, then kcp.
package server

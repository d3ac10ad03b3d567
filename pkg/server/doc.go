// Package server wires the hub: flags become Options, Options.Complete returns a Config, and Run
// runs a hub with it until its context ends.
//
// A start goes in this order: the listener with the health probes, the embedded kcp, the tree
// (package bootstrap), the informers and views, the routes, the controllers. A stop goes in the
// reverse order: the listener drains, then controllers and views stop, then kcp.
package server

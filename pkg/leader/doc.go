// Package leader lets one replica of the hub lead: it alone runs the reconcilers
// that write. A Lease is held for it in the hub's root workspace; a hub with a kcp
// of its own is alone and needs none.
//
// Whether a replica may write is a matter of time, not of being told: the right to
// lasts for a while from when its last successful renewal began, and ends well
// before any other replica may take the Lease, by the first of its machine's clocks
// that says so: the monotonic one may stand still while the machine is suspended,
// and the wall clock may be set. So a process that was stopped and goes on, or that
// cannot reach kcp, writes nothing more, whatever it believes.
package leader

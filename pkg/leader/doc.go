// Package leader elects the replica that runs the controllers, with a Lease in the hub's root
// workspace. A hub with an embedded kcp is alone and needs no Lease.
//
// # Decision
//
// The leader's right to write is limited in time. It lasts from the start of the last
// successful renewal and ends more than a second before another replica can take the Lease. It
// ends by the monotonic clock or by the wall clock, whichever comes first: the monotonic clock
// can stand still while a machine is suspended, and the wall clock can be set. A process that
// was stopped and continues, or that cannot reach kcp, therefore writes nothing more. The
// transport checks the right again for each write (pkg/kcp/transport).
package leader

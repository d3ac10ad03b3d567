// Package transport is the HTTP transport of the hub's own requests to kcp: one chain
// of RoundTrippers that follows kcp's credential, counts, holds writes back that have
// lost their fencing right, and watches whether kcp is alive.
//
// Health is the one answer to whether kcp is available. It goes by whether anything
// arrives on a connection and whether kcp reports ready, not by how fast it answers.
// Clock is the time of kcp.
package transport

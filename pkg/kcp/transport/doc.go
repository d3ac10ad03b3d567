// Package transport is the HTTP transport of the hub's own requests to kcp: one chain
// of RoundTrippers that renews kcp's token, counts requests, refuses writes of a replica
// that is no longer the leader (fencing), and detects whether kcp is alive.
//
// Health says whether kcp is available. It depends on whether data arrives on a
// connection and whether kcp reports ready, and not on the latency of answers. Clock is
// the time of kcp.
package transport

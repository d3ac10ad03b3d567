// Package activation reactivates logical clusters that kcp's admin has marked inactive
// while they were Ready.
//
// kcp (0.32) gives such a cluster the phase Inactive. While one exists, kcp refuses all
// wildcard requests of the shard, the hub's watches among them. So this controller runs
// on every replica and waits neither for the caches of other kinds nor for leadership.
// The resource version is a precondition of its patch.
package activation

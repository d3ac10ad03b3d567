// Package activation makes logical clusters active again that kcp's admin has marked
// inactive while they were Ready.
//
// kcp (0.32) gives such a cluster the phase Inactive and, while one exists, refuses all
// wildcard requests of the shard, the hub's watches among them. So this controller runs
// on every replica and does not wait for the cache of other kinds or for leadership.
// Its patch applies to just the version of the cluster that it has seen.
package activation

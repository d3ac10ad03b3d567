// Package freeze deactivates logical clusters in kcp and activates them again. kcp
// refuses every request to a deactivated cluster and ends its watches. The hub
// deactivates soft-deleted Organizations and Workspaces, so that a token that bypasses the
// hub cannot reach them either (O-13).
//
// A deactivated cluster has two marks, written in this order: the phase Unavailable,
// then the annotation core.kcp.io/inactive. Activate removes them in reverse order. The
// phase comes first because kcp (0.32) turns a Ready cluster with the annotation into
// phase Inactive. While one cluster of a shard has that phase, kcp refuses all wildcard
// requests of the shard, the hub's watches among them.
//
// kcp limits the annotations of an object to 256 KiB together, and keeps a lock for each
// CustomResourceDefinition in one of the LogicalCluster. A tenant can leave no room for the
// second mark. The first one refuses all requests, and the hub closes the streams through it,
// so what is lost is that kcp ends the watches of clients that reach kcp itself. Deactivate
// then fails with errs.TooLarge, which deletions go on after.
//
// Only kcp's shard admin may write the annotation. Without that right Deactivate fails
// with errs.Forbidden. The package does not cache the refusal: the next call asks kcp again.
// The front proxy of a kcp with several shards removes that right from every request, so
// these writes go to the shard of the logical cluster.
package freeze

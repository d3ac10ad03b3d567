// Package freeze deactivates logical clusters in kcp and activates them again. kcp
// refuses every request to a deactivated cluster and ends its watches. The hub
// deactivates what is soft-deleted, so that not even a token that bypasses the hub
// reaches it (O-13).
//
// A deactivated cluster has two marks, written in this order: the phase Unavailable,
// then the annotation core.kcp.io/inactive. Activate removes them in reverse order. The
// phase comes first because kcp (0.32) turns a Ready cluster with the annotation into
// phase Inactive. While one cluster of a shard has that phase, kcp refuses all wildcard
// requests of the shard, the hub's watches among them.
//
// Only kcp's shard admin may write the annotation. Without that right Deactivate fails
// with errs.Forbidden. The front proxy of a kcp with several shards takes that right from
// everybody, so the writes go to the shard of the logical cluster. Nothing remembers the refusal: the next call asks kcp again.
package freeze

// Package external keeps in kcp what all replicas of a hub share of a restore: the order, how far it is carried out, and
// the report.
//
// # Decisions
//
//   - One Secret in the root workspace of the tree, the head, says which phase the restore is in. Tenants and bots have no
//     access to that workspace. Every change of the head is a compare-and-swap.
//   - What can be larger than an object of etcd is compressed and written in chunks, which nobody changes. The head then
//     names them with their number and hash: a reader sees all of what was written before, or all of the new.
//   - The head is written first, too, in the phase Writing. Replicas that start from then on serve nobody, so a command
//     that is killed leaves a hub that waits, and none that serves with rights that have ended.
//   - A phase is never followed by an earlier one of the same order, and what a replica writes about another order is
//     refused. So replicas can carry out the same order at the same time, and each of them can be killed.
//   - The head stays while purges are held. Its removal releases them, on all replicas.
package external

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
//   - An order that is being written keeps what it replaces. A command that finds that a hub works meanwhile puts that back:
//     what hubs have begun to end they go on to end, and purges that were held stay held.
//   - A phase is never followed by an earlier one of the same order, and what a replica writes about another order is
//     refused. So replicas can carry out the same order at the same time, and each of them can be killed.
//   - The head stays for ever, with the ID of the last order. The removal of its phase releases purges, on all replicas. So
//     a replica that has an order and finds no head knows that kcp was changed behind it, and does not serve.
package external

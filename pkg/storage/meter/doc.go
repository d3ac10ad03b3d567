// Package meter counts what each Workspace stores, and refuses what would pass its limits.
//
// # Decisions
//
//   - A measurement reads all objects of a Workspace page by page. Between measurements the meter counts
//     what it admits, until kcp's answer says that the request added nothing. Deletions, and growth past
//     the proxy, are found by the next measurement.
//   - The size of what an update changes is not known. Its body is an upper bound: while all of them since the
//     measurement fit into the limit, an update passes and nothing is counted as used. Else the caller has it
//     weighed, and what it adds is admitted like a new object. So an update that does not grow always
//     passes.
//   - The replicas do not know of each other, and may pass a limit by 5% together. Each may add a quarter of
//     that, an eightieth of the limit, behind any measurement, and an eighth of what is left behind a fresh one. A
//     request beyond that waits for a measurement, at most 15 seconds. This holds for four replicas, of a
//     Workspace; the bytes of an Organization are measured again within minutes where it grows.
//   - A resource that cannot be read keeps its last count, and is left out before it was read for the first
//     time. Everything else of its Workspace is counted: neither can a tenant hide objects by making them
//     unreadable, nor does the dead API of a provider stop a tenant. kedge_storage_incomplete_workspaces
//     shows it.
//   - One measurement runs at a time, Organizations take turns, and a Workspace waits for twenty
//     times as long as its last one took: a tenant that grows and shrinks again and again costs kcp 5% of
//     its time, and one at a limit or with a waiting request 20%.
//   - A refused request has the Workspace measured again, so that there is room within two minutes of
//     a deletion.
package meter

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
//   - The next measurement, an hour later at most, finds what other replicas let in. The weight of requests that read a
//     Workspace does not wait for it: a larger answer is a lower bound of what there is (Larger).
//   - A resource that cannot be read keeps its last count, and gets all that is added to it, also by requests that kcp
//     answers with an error: it can have stored what it cannot show. Its updates are weighed one by one. It is one that
//     kcp refuses to read, or one of a definition or an APIBinding that kcp does not find. So a tenant makes
//     no room by breaking a conversion or serving no version, and everything else of the Workspace is counted.
//     kedge_storage_incomplete_workspaces shows it.
//   - What was never read is not known: the counts are in memory, and begin anew with the process. Of a definition of
//     the Workspace's own it is then unknown how much it hides, as of one that serves no version since before that was
//     refused. Nothing is added to such a Workspace until its definition can be read or is deleted. A second
//     measurement must have found it so, because a new definition is not in discovery at once.
//   - What is bound from a provider is left out until it was read for the first time: the dead API of a provider does not
//     stop a tenant. Only after a restart of the hub can a tenant whose own provider hides objects have as
//     many once more.
//   - One measurement runs at a time, Organizations take turns, and a Workspace waits for twenty
//     times as long as its last one took: a tenant that grows and shrinks again and again costs kcp 5% of
//     its time, and one at a limit or with a waiting request 20%.
//   - A refused request has the Workspace measured again, so that there is room within two minutes of
//     a deletion.
package meter

// Package meter counts what each Workspace stores, and refuses what would pass its limits.
//
// # Decisions
//
//   - A measurement reads all objects of a Workspace page by page. Between measurements the meter counts
//     what it admits, and nothing is subtracted: the count is never less than what this replica has let
//     in. Deletions, and growth past the proxy, are found by the next measurement.
//   - Nothing is refused for what is not measured yet, up to an allowance of 5% of a limit. Beyond it
//     requests are refused for the moment until the first measurement is there.
//   - A resource that cannot be read keeps its last count, and is left out before it was read for the first
//     time. Everything else of its Workspace is counted: neither can a tenant hide objects by making them
//     unreadable, nor does the dead API of a provider stop a tenant. kedge_storage_incomplete_workspaces
//     shows it.
//   - One measurement runs at a time, Organizations take turns, and a Workspace waits for twenty
//     times as long as its last one took: a tenant that grows and shrinks again and again costs kcp 5% of
//     its time, and one at a limit 20%.
//   - A refused request has the Workspace measured again, so that there is room within two minutes of
//     a deletion.
package meter

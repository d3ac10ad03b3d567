// Package usage counts what the requests in Workspaces use, and keeps what the records database does not have yet.
//
// # Decisions
//
//   - No request waits for the database: a request adds to counters in memory. A row is the count of one process
//     in one Workspace and interval, always the whole of it, so that a row that is written again changes
//     nothing. What a process had not written when it was killed is lost.
//   - A request counts when it is admitted, in the class of its verb. Bytes and the seconds of streams count when
//     they pass, so that a watch of many hours is in each of them, with its caller.
//   - Distinct callers of all replicas and intervals are the distinct rows of callers, not a sum.
//   - What is measured, such as the stored bytes, is the most of an interval.
//   - What one tenant causes is bounded. Of a Workspace, 1000 callers count in an interval and process, and no more.
//     While the database is down, a replica keeps 200 000 rows; beyond that it gives up the oldest interval, of all
//     tenants, and kedge_usage_lost_total counts the rows.
package usage

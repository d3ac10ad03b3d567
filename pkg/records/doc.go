// Package records keeps the past in SQL: the events of the audit log, usage, who had access, and what bills depend on, for
// those who own a platform.
//
// # Decisions
//
//   - Nothing waits for the database. The files of the audit log are the queue: a Shipper in each replica
//     follows its own files over rotations, and remembers in the database how far it is, in the
//     transaction that stores the events. So an event is there once, whatever fails in between.
//   - An event is identified by its replica, its chain and its number. A replica that stores an event again
//     changes nothing.
//   - The position of a Shipper is the number and the hash of the last event that is stored: files of which the power, or a
//     copy, took the end go on with numbers that are taken. Where the first event behind the position does not follow it, or
//     the position is not what the last transaction left, it stores nothing and says so. A hub that starts puts such files
//     aside before it appends to them, if the database has all that is in them, and is a new replica.
//   - If a table is dropped, the Shipper makes it again, and stores what its files still have.
//   - Usage waits in memory (package usage), because it is many small sums. A row has the whole count of a process in an
//     interval, and replaces what that process has written before. What several processes measure is the most of
//     them, and callers are a set.
//   - The column event has the line as it is in the file, so that the chains can be verified in the table,
//     too. The other columns are there for queries.
//   - One schema serves SQLite and PostgreSQL; goose makes and upgrades it, in PostgreSQL under an advisory lock.
//     A migration only adds, and makes what is missing.
//   - A Reader answers for all replicas. The tenant of a query is a condition that no caller writes; each condition
//     is a constant, and what a client sends is the value of a placeholder. The event that was read must
//     name the tenant, too, because the columns lack the NULs that a client can send.
//   - Outsiders can cause as many events of an Organization as they like. The indexes of tenants leave these out, and
//     SQLite, which has no statistics, is told which index to take: so admins find theirs whatever others send.
//   - A page looks at a limited number of events where a filter has no index, so that no tenant makes the
//     database read all that it wrote. Pages are ordered by time, replica and number: a position is good at
//     every replica, and later events do not move it.
//   - A row of billing_workspaces says what a Workspace was during an interval. The leader records each change when
//     its caches have it; changes wait in memory while the database fails, and each is written with its time, so
//     that writing it again changes nothing, and two leaders cannot have two rows without an end. A new leader compares
//     the rows without an end with the present. A row of access_intervals is a fact that access follows from, and is
//     recorded likewise.
//   - Who had access at a moment follows from the facts of that moment by the rules for requests, when it is read. So there
//     is no row for each person and Workspace, and rules have one form.
//   - Nobody knows when something ended while no leader looked. In access_intervals it ends when it was last seen, and
//     access_looks says when somebody looked, so that an answer can say how much it knows.
//   - A Pusher appends to a table of others what is to be billed for an interval, when nothing of the interval can come
//     any more. Rows have IDs that follow from Workspace and interval, so that what is pushed again changes nothing; the
//     records have the position. Its target is always a PostgreSQL, because others own the table.
//   - The shipper and those who read have connections of their own. Statements have time limits.
//   - No URL is logged or in an error: it can have a password.
package records

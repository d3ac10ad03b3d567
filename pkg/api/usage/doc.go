// Package usage serves what the Workspaces of an Organization use to its admins, and what all Organizations use,
// and to whom it is billed, to auditors.
//
// # Decisions
//
//   - The answer comes from the records database, with what all replicas have counted, also in the running hour: it is
//     at most a minute old, and says how far behind each replica is. Without a database it is 501.
//   - The tenant comes from the scope of the request, and is part of the type of a query.
//   - An answer has at most 1000 items and no pages. Everybody can become admin of an Organization by creating one, so
//     requests per person are limited, together with those for the audit log.
//   - People are counted and not named. What they do is in the audit log.
package usage

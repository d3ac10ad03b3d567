// Package audit serves the audit log of an Organization and of a Workspace to its admins, and that of the whole hub to
// auditors.
//
// # Decisions
//
//   - The answer comes from the records database, with the events of all replicas. An answer waits a moment
//     for those of the replica that gives it, and says how far behind each replica is. Without a
//     database it is 501.
//   - The tenant comes from the scope of the request, and is part of the type of a query. A continue token is a
//     position only: every replica accepts it, and a forged one moves the start of a page.
//   - A page looks at a limited number of events. It can therefore have fewer events than the limit, or
//     none, and still have a continue token. Everybody can become admin of an Organization by creating one,
//     so requests per person are limited, too.
//   - CSV and NDJSON have all events. They are written page by page, and before each page the right to
//     read is judged again.
//   - An admin sees the events of people who have a role in the Organization, of its bots, of
//     platform admins and of the hub. The other members see one action: that a platform admin made somebody
//     admin of their Organization. The query selects it, with an index of its own. Network addresses, issuers and sessions
//     are not shown, and neither are attempts of people who have no role in it. An auditor sees all of it.
package audit

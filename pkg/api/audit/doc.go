// Package audit serves the audit log of an Organization to its admins.
//
// # Decisions
//
//   - The answer comes from the log files of this replica, because the log is a file and not a
//     database. It names the replica. The token of the next page is good for that replica only.
//   - A request looks at a limited part of the log. A page can therefore have fewer events than the
//     limit, or none, and a next page all the same. One request looks at the log at a time, and the
//     rate of requests per person is limited: the creator of an Organization is its admin, and no
//     index makes reading cheap.
//   - An admin sees the events of people who have a role in the Organization, of its bots, of
//     platform admins and of the hub. The issuers and sessions of people are not shown, and neither
//     are attempts of people who have no role in it.
package audit

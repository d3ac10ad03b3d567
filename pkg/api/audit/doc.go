// Package audit serves the audit log of an Organization to its admins.
//
// # Decisions
//
//   - The answer comes from the log files of this replica, because the log is a file and not a
//     database. It names the replica. A continue token is valid for that replica only.
//   - A request reads a limited part of the log. A page can therefore have fewer events than the
//     limit, or none, and still have a continue token. The log has no index and everybody can
//     become admin of an Organization by creating one, so only one request at a time reads the
//     log, and the rate of requests per person is limited.
//   - An admin sees the events of people who have a role in the Organization, of its bots, of
//     platform admins and of the hub. The issuers and sessions of people are not shown, and neither
//     are attempts of people who have no role in it.
package audit

// Package requests serves the AccessRequests of people who need more rights in a Workspace for a while, and has
// their admins decide.
//
// # Decisions
//
//   - A request and each decision about it are changes of the Organization by compare-and-swap, in one order with all
//     other grants and removals. The approval and the part of the Membership that it gives are one write, judged for
//     the rights of the admin at that version: nobody decides about a request of their own, or after their own
//     removal.
//   - What an approval gives is a part of the Membership with an end. It ends in its second on every replica, without
//     this package.
//   - A person sees their own requests, and those that they may decide about. All other requests, and Workspaces in
//     which the caller may not ask, are the 404 of missing ones.
package requests

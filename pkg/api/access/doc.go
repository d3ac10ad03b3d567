// Package access serves who had access to an Organization or a Workspace at a moment to its admins, and of
// any Organization to auditors.
//
// # Decisions
//
//   - The answer comes from the records database and not from the caches, also about now: it says up to which moment the hub
//     looked. Without a database it is 501.
//   - The facts are recorded, and the access follows from them by the rules that apply to requests (tenancy.HoldersAt), so
//     that the answer has implicit rights and their sources, too.
//   - The tenant comes from the scope of the request. An admin of an Organization reads about its Workspaces that exist; the
//     answer about the Organization has those that were removed since. An auditor names the tenant in the query, also one
//     that is purged.
//   - An answer has no pages: it is as long as the list of members. Requests per person are limited, together with those for
//     the audit log and for usage.
package access

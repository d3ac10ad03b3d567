// Package httpmw holds the HTTP middleware in front of all handlers: request id, recovery
// from panics, log, metrics, audit, authentication, and the scope of a request. The scope is
// the Organization and Workspace that the headers X-Kedge-Org and X-Kedge-Workspace name; it
// must agree with the path and with the caller's UserMembershipIndex.
//
// CallerOf and ScopeOf return what the middleware found. They panic on a route without the
// middleware, so that a missing check fails instead of serving.
//
// # Decisions
//
//   - Authentication and scope read caches only. No request reads kcp for them.
//   - For callers who are not members, a missing and a foreign Organization or Workspace give
//     the same 403 answer, byte for byte.
//   - The body of a write is read completely before the caller is authenticated. A client that
//     sends slowly is judged by its rights at the end of the body.
//   - A platform admin named by the operator's flags needs no approval: otherwise nobody could
//     approve the first one. By name this holds only for users of the token file, because
//     elsewhere people have a say in their own name.
package httpmw

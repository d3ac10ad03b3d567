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
//   - Tokens of bots and tokens of people are told apart first: Authenticate looks at the
//     issuer that a token names and leaves all other tokens to Authenticate. A token of a bot is
//     compared with the token list of its Bot in a cache, and again for each of its open streams
//     when that list changes.
//   - Authentication and scope read caches only. No request reads kcp for them.
//   - A credential is valid while Caller.Valid says so: it has not expired, its Session has not
//     ended, the person has not signed out everywhere after it was issued, and the person may
//     act. The middleware asks at authentication; handlers and streams that outlive it ask again.
//     A token that the identity provider gave to another program belongs to no Session.
//   - The portal's cookie is a credential under /api only, and a bearer token has precedence. A
//     write with it must pass http.CrossOriginProtection, even without a body. A cookie that the
//     hub did not issue costs no look-up. If another replica has just created the Session, the
//     request waits until the cache has it.
//   - A request to a Workspace never signs a person up.
//   - For callers who are not members, a missing and a foreign Organization or Workspace give
//     the same 403 answer, byte for byte.
//   - No body is read before the caller is authenticated. After the body of a write was read
//     completely, the caller is authenticated again and the scope is found: a client that sends
//     slowly is judged by its rights at the end of the body.
//   - Limits per peer hold before a credential is verified, limits per person after it. A flood of
//     bad tokens from one address does not lock out the people behind it whose tokens are known.
//   - Over the limit of requests in flight a request waits in turn, because scripts and the discovery of
//     kubectl send many at once. Its credential is checked again afterwards. A request keeps its slot until its
//     handler returns, which handlers do not do before a write that outlives its client ends.
//   - No limit of all clients together is taken by a request that proves nothing, so that strangers
//     from many networks cannot use it up. What strangers do that costs kcp or the identity provider
//     something is divided: each IPv4 address and each IPv6 /48 has an equal share, and a new
//     one has a share at once. A sign-up counts when the person will really be created.
//   - Audit runs before Authenticate, so that a refused request has an event, too. The code that
//     writes calls Intend when it knows the facts of the change: a middleware would write the intent
//     without them. Intend panics on a route without Audit.
//   - A platform admin named by the operator's flags needs no approval: otherwise nobody could
//     approve the first one. By name this holds only for users of the token file, because
//     elsewhere people have a say in their own name.
package httpmw

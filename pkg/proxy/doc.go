// Package proxy serves /clusters/{cluster}/…, the only way to kcp for people and bots.
// Each request passes these stages in order:
//
//  1. shape: the path must be {cluster}, an ID or the path of a child Workspace, and then a
//     path of the Kubernetes API that tenants may use. Anything else is 404.
//  2. authenticate (package httpmw): the bearer token alone identifies the caller.
//  3. gate (tenancy.Gate): the caller's Memberships decide, from caches. A bot enters its own
//     Workspace and no other (tenancy.BotGate).
//  4. clean: the headers to kcp are built from an allow-list; impersonation is refused except
//     for sudo.
//  5. content: the bodies that kcp would make very much of, before it asks its admission policy, are
//     read and bounded here: roles, and YAML.
//  6. forward: the caller's own token goes to kcp unchanged. kcp authenticates it again and
//     enforces RBAC. The hub adds no rights. The headers of the answer pass by an allow-list.
//  7. cut: open streams are closed when the right to them ends, when the credential of
//     their caller expires, and when its Session ends.
//
// # Decisions
//
//   - Requests are forwarded to the logical cluster ID that the gate checked, even if the
//     client used a path: a path could refer to another logical cluster a moment later.
//   - Streams are closed when the Membership changes, and again when kcp refuses the old right,
//     too. In between, the gate admits a client with the new role and kcp authorizes it with
//     the old one. A request whose body is still being sent is closed like a stream.
//   - Refusals are metav1.Status objects. Those of aggregated discovery are plain text, because
//     kubectl prints only "unknown" for a Status there.
//   - People with a role in a soft-deleted Workspace get 403 with the reason, here and for
//     /api/credentials. Under /api/orgs they get 404. For a 404, kubectl would print only that
//     the server could not find the resource.
//   - The connection to kcp uses HTTP/1.1, because an upgraded connection cannot share an
//     HTTP/2 connection with other requests.
//   - Writes of tenants are reported to the workspace reconciler, which repairs objects of the
//     Workspace template: no informer covers kinds that the hub does not know.
//   - What passes the gate and the limits is usage of the Workspace. It is counted in memory, with a counter that each
//     request finds once.
package proxy

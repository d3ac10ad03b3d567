// Package audit writes the audit log, one JSON object per line, and reads it for the admins of
// an Organization. An event says who asked for what, from where, and what was decided. It contains
// no tokens, and no request or response bodies.
//
// # Decisions
//
//   - A change has two events with one ID: the intent before the hub writes to kcp, with all that
//     was decided, and the outcome with the code of the answer. A handler writes the intent when it
//     has parsed and judged the request, so that the intent has the facts and a kill of the hub
//     loses neither. An intent without an outcome means that the hub ended in between, or that the
//     log was full then: the change may have been made.
//   - A purge has an outcome only, with the number of removed objects: it takes many
//     reconciliations, and the request for it has both.
//   - A request that is refused before anything is written has an outcome only. A request that
//     changes nothing may have an intent, because only kcp knows that.
//   - If the intent cannot be written, the change is refused with 503, unless it takes rights away
//     and gives none: that works always. The lost event is counted (kedge_audit_lost_total), and
//     the readiness details report it. Nothing that only reads depends on the log.
//   - Proxied writes are treated alike: a delete passes without an intent, because it frees
//     space and RBAC only adds rights; every other write, exec, attach and port-forward is refused.
//   - A token that follows from a login, or from a session that goes on, has an outcome only: the
//     login has the intent. A refusal of tokens has an outcome only, too, also if it ends a session
//     because its secret comes a second time.
//   - Refusals with 401 and 429, and those before the limits of the caller, are sampled: the
//     first of a minute for each client, action and code, with the number of those since the last.
//   - write(2) is enough: the log survives the end of the process, not the loss of power.
//   - Files are rotated by size (lumberjack, as in kube-apiserver). A line that a full disk cut in
//     two is ended before the next one, and readers skip it.
package audit

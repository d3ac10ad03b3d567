// Package audit writes the audit log, one JSON object per line. An event says who asked for what, from
// where, and what was decided. It contains no tokens, and no request or response bodies.
//
// # Decisions
//
//   - A change has two events with one ID: the intent before the hub writes to kcp, with the facts
//     of the change, and the outcome with the code of the answer. A handler writes the intent after
//     it has validated and authorized the request. An intent without an outcome means that the hub
//     ended in between, or that the log was full then: the change may have been made.
//   - A purge has an outcome only, with the number of removed objects: it takes many
//     reconciliations. The request that led to it has both events.
//   - A request that is refused before anything is written has an outcome only, which is Unchanged, and so has one that
//     changes nothing. It may have an intent nevertheless, because only kcp knows that.
//   - The event of what takes rights away has all that it takes to do the same again: a restore replays it.
//   - If the intent cannot be written, the change is refused with 503, unless it takes rights away
//     and gives none: such a change always works. The lost event is counted
//     (kedge_audit_lost_total), and the readiness details report it. The next event of the chain says how many
//     are lost before it. Reads do not depend on the log.
//   - A disk that does not answer is one that cannot be written: who waits for it is refused after ten seconds, and those
//     who come meanwhile at once. An end is then carried out, and counted as lost; the one event that hangs is written when
//     the disk answers. A hub that is killed before that forgets the number, because the mark is on the same disk.
//   - A restart does not forget that events of the rights are lost: a restore would give back what ended unaudited. The
//     mark, a file with an empty line beside that of the chain (FILE.whole), is emptied before such a change is carried
//     out, which takes no space. The first event after a start with an empty mark says that one event is lost
//     before it, whatever their number was; the mark has its line again when an event that counts them is on the
//     disk. A kill between the two counts them twice, and none not at all.
//   - If the mark cannot be emptied, such as on a disk that has become read-only, the change is carried out all the same.
//     A removal that is refused leaves a right in force for certain, while one that is forgotten comes back only where the hub
//     is killed before it can write, and then restored from a backup of before. The readiness details say it.
//   - A chain without a mark is new, or a version that had none wrote it: it counts as whole, and gets one. If its disk has
//     no room for that, it does not: that version has then lost events, too, and its end forgot them. That version, after
//     a rollback, leaves the mark as it is.
//   - A restore that is given a file beside its mark, of a hub that was not started again, knows from it that more ended than
//     the file says.
//   - The same holds for proxied writes. A delete passes without an intent, because it frees
//     space and RBAC only adds rights; every other write, exec, attach and port-forward is refused.
//   - A proxied create that leaves the name to kcp has it in the outcome: the proxy reads it from the answer as
//     it passes. The event of a proxied write that the hub refuses says where it was to go.
//   - A token that a login or a running session gets has an outcome only: the login has the
//     intent. A refused token request has an outcome only, even if it ends a session because its
//     secret was used a second time.
//   - Refusals with 401 and 429, and those before the limits of the caller, are sampled: the
//     log has the first of a minute for each client, action and code, with the number of events
//     that were left out since the last one.
//   - Every text of an event is cut where its line is made, by a walk over the type: a line that is longer than what readers
//     take would be a gap in its chain. Of an event that is too long nevertheless, what identifies it is written, with cut:
//     a restore says that it does not know it.
//   - A line is written with write(2) and without fsync: the log survives the end of the process,
//     but not the loss of power.
//   - Rights and writes have files of their own, of the same sizes: proxied writes, and requests that are refused or
//     change nothing, of which tenants can cause many, push nothing out of the other one, and no restore needs them.
//     Within the writes, an Organization has a budget for each minute, and one event counts the rest by verb and resource.
//     Outsiders pay for themselves, and so do those who send requests to the API that change nothing: a request can
//     name any Organization.
//     A request is in the budget as a whole, so that no intent lacks its outcome. A killed hub loses the number of the
//     running minute.
//   - An accepted change has its events always, so what bounds them bounds the changes: an Organization, and a person or
//     bot, has a share of the files of rights, and a change above it is refused with 429 before it is written.
//     shares has the figures. A platform admin has no bound.
//   - An end is never refused. Above the share its intent is written just before the first write to kcp: an end that
//     ends something has its events of rights, which a restore replays, and one that is repeated has
//     an outcome that is Unchanged. Nobody can end more than was given before. Below the share no end waits for that.
//   - Each file is a chain: an event has the ID of its replica, its number, and the hash of the line before.
//     Verifier finds lines that are missing, changed, doubled or moved. Who can write the file can write
//     another chain that ends earlier or otherwise: the ends are therefore recorded in the log of the
//     hub every hour and at its stop, and compared with it.
//   - Query is how tenants ask for events, wherever they are stored. It is made for a tenant: what a handler
//     has authorized is in its type, and filters cannot leave it out.
//   - Files are rotated by size. The first event of the new file says what was put away and removed, and
//     where the chain begins now. If a full disk truncates a line, the next event begins on a new line,
//     and readers skip the truncated one: its number is given again.
package audit

// Package spare keeps workspaces ready that nobody owns, so that a create need not wait for kcp: those of
// the next Organizations, each with a child Workspace in it, and one of the next child Workspace in every
// Organization that made one within a day.
//
// A key names the logical cluster that the spares are in: that of all Organizations, of one Organization,
// or of a spare one. The controller of child Workspaces finishes a spare as it does any other, but for the
// people.
//
// # Decisions
//
//   - One worker makes one spare at a time, and only while kcp makes nothing that somebody waits for.
//   - A spare is never repaired and never given to a second person. What is not as new, such as one of
//     another version, or reserved by a request that did not go on, is deleted. Before it deletes a
//     reserved spare the controller asks kcp for the claim: in a cache that is behind, a spare that
//     somebody was promised looks abandoned.
//   - kcp refuses the deletion of another version of the object than the one that was judged. So a spare
//     is either reserved or deleted.
package spare

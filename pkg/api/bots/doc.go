// Package bots serves the Bots of a Workspace and their tokens (O-14), under
// …/workspaces/{ws}/serviceaccounts.
//
// A token is in the list of its Bot before kcp issues it, and usable only after the list has
// the Secret that it is bound to. So there is never a token that works and is in no list; an
// issue that stops half-way leaves an entry that no token matches, and the bot controller
// removes it. A token is in one answer only: a repeated Idempotency-Key is refused with the
// ID of the first.
package bots

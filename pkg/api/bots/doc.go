// Package bots serves the Bots of a Workspace and their tokens (O-14), under
// …/workspaces/{ws}/serviceaccounts.
//
// The Bot lists a token before kcp issues it. The token is usable only after the list names the
// Secret that the token is bound to, so every token that works is in a list. A request that stops
// half-way leaves an entry without a token, which the bot controller removes. A token is returned
// only once: a repeated Idempotency-Key is refused with the ID of the first token.
//
// A job of CI gets a token of a Bot for its own ID token (Exchange). A trust rule of the Bot says which
// jobs do. The rule must be there when the token is listed, which is one compare-and-swap of the Bot, so
// that no token outlives the removal of its rule. kcp creates one Lease for each ID token, so that it works
// once on all replicas. A job learns nothing from a refusal.
//
// A new Bot, a new trust rule, and a higher role, are changes of the Organization, as those of Memberships are. A token
// is answered only if its author is entitled after kcp has all of it.
package bots

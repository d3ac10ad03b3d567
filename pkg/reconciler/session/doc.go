// Package session removes what Sessions leave behind. A Session ends by rule
// (tenancy.SessionEnded), without this controller: requests are refused and streams are cut
// on every replica. The controller writes endedAt where the rule ended a Session, removes the
// User's refresh token with the last Session, and removes a Session when every ID token that
// was handed out through it has expired: until then its hashes refuse them. A finalizer keeps
// a Session that somebody deletes by hand for as long. It also ends the Sessions that were used longest ago of a User who has more than a hundred.
//
// The key without a name stands for the Secrets about logins, which no informer shows. With
// each resync those are removed that nobody needs: device logins that have expired, and
// refresh tokens of logins that failed before their Session was created.
package session

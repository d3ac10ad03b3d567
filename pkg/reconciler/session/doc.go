// Package session cleans up after Sessions. The end of a Session does not depend on it:
// every replica computes it (tenancy.SessionEnded), refuses requests and closes streams.
//
// The controller writes endedAt to a Session that has ended, and removes the User's refresh
// token with the last Session. It removes a Session when every ID token that was issued
// through it has expired: until then the hub needs the hashes in the Session to refuse these
// tokens, and a finalizer keeps a Session that somebody deletes by hand. If a User has more
// than a hundred Sessions, the controller ends those that were used least recently.
//
// The key without a name stands for the Secrets about logins, which no informer covers. Each
// resync removes the Secrets of device logins that have expired, and the refresh tokens of
// logins that failed before their Session was created.
package session

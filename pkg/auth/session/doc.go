// Package session keeps the logins of people: Service creates Sessions, redeems their
// codes, refreshes their ID tokens and ends them. The refresh token of the identity provider
// stays in the hub; a client gets ID tokens and a secret that the hub issues.
//
// # Decisions
//
//   - A secret is {session}.{generation}.{MAC}, and a code has a MAC, too. The hub computes
//     them from its session keys and stores none. A forged secret therefore costs no read of
//     kcp. Requests that present one secret at the same time get the same successor on every
//     replica. A client that crashed before it saved the successor can repeat the request.
//   - The MAC covers the name of the Session and not its UID, which only kcp knows: the name is
//     random and used once.
//   - Every replica computes whether a Session has ended (tenancy.SessionEnded), so that it
//     ends everywhere without a leader. Package reconciler/session only cleans up.
//   - The hub writes the hash of an ID token to the Session before it returns the token. If
//     the Session has ended meanwhile, that write fails, so that no token outlives its Session.
//   - All Sessions of a person share the newest refresh token (tenancy.ProviderGrant): to
//     the identity provider the hub is one client, and some providers end the older refresh
//     token of a person and client at a new login. That holds for logins of the command
//     line and of the portal alike.
//   - The grant has a lease, taken by compare-and-swap, which serializes refreshes across
//     replicas and sessions. The holder reads the Session again: if another replica has
//     refreshed it meanwhile, the holder returns that token and does not ask the provider.
//   - A refresh continues after its client has disconnected, because the provider may have ended the
//     old refresh token already. A process that is killed between the provider's answer and
//     the write of the grant loses that answer: the next refresh presents the old refresh
//     token, and if the provider refuses it the person logs in again.
//   - Replicas read a changed key file minutes apart. So a new key is the last one at first, which every replica
//     verifies and none seals with, and comes to the front later. A running replica also waits ten minutes before it seals
//     with a key that it did not have. A replica that starts cannot know whether the others have its keys.
//   - What is sealed names its key, without proof, so an unknown name is no refusal and ends nothing: that of a
//     grant is Unavailable. A secret names no key, and one that no key verifies gets nothing.
//   - Times are those of kcp's clock, so that replicas agree about the minute in which an
//     older secret is accepted.
package session

// Package invitations serves the Invitations to Organizations and Workspaces, and decides about them.
//
// # Decisions
//
//   - All that happens to an Invitation is decided by compare-and-swap on the Organization, as every grant and
//     every removal is, and its reconciler carries it out: a new one, an answer, and a person who signs up with
//     it. So the quota holds on all replicas, of two people who accept one wins, and nobody accepts after the
//     answer to a revocation, or to the removal of the person who invited them.
//   - The acceptance is one write of the Organization, with the Membership in it. At that version the Membership
//     that entitled the inviter, found by its UID, must entitle them still.
//   - An Invitation vouches for one new person: where not everybody can sign up, it is kept for the first
//     identity that signs up with it. A link that was passed on lets one person into the hub, and not a crowd.
//   - The hub stores a hash of the secret, which is 256 random bits. A missing Invitation, a wrong secret and
//     another person's address have one answer.
//   - An address counts only while a token says that the identity provider has verified it. People are not
//     looked up by address.
package invitations

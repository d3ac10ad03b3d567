// Package invitation cleans up after Invitations. That an Invitation has ended does not depend on it:
// everybody who looks compares spec.expiresAt with the time, and the reconciler of the Organization carries
// out the answers.
//
// The controller writes the state Expired, for people who look with kubectl, and removes an Invitation a
// month after it expired, or with its Workspace.
package invitation

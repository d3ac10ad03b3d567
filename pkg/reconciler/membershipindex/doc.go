// Package membershipindex derives the UserMembershipIndex of each User from the Memberships
// (O-3). It is the only writer of these objects: a deleted or changed index is restored, and
// an index without a User is removed.
package membershipindex

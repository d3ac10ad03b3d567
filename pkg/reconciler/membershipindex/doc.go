// Package membershipindex derives the UserMembershipIndex of each User from the
// Memberships, and is its only writer (O-3). An index that somebody altered or deleted is
// restored without loss.
package membershipindex

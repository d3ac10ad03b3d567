// Package membershipindex derives the UserMembershipIndex of each User from the
// Memberships, and is its only writer (O-3). If somebody changes or deletes an index, the
// controller restores it without loss.
package membershipindex

// Package accessrequest cleans up after AccessRequests. That a request has lapsed or what it gave has ended does
// not depend on it: everybody who looks compares with the time, and the rights are a part of a Membership, which
// ends by itself. The reconciler of the Organization carries the decisions out.
//
// The controller writes the states Lapsed and Ended, for people who look with kubectl, and removes an
// AccessRequest a month after it was made, or with its Workspace.
package accessrequest

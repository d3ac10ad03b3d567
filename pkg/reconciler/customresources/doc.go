// Package customresources records on every child Workspace, in an annotation, which
// CustomResourceDefinitions its tenants have created. The roles of the Workspace cover
// them.
//
// The hub does not watch the definitions. Two controllers list them in kcp: the follower
// of every replica, after a write of a definition went through its proxy, and the sweep
// of the leader, which finds what no replica has seen.
package customresources

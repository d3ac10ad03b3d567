// Package customresources records in an annotation of every child Workspace which
// CustomResourceDefinitions its tenants have created. The ClusterRoles of the Workspace
// grant access to them.
//
// The hub cannot watch CustomResourceDefinitions through an APIExport, so two controllers
// list them in kcp: the follower on every replica, after a write of a CustomResourceDefinition
// went through its proxy, and the sweep on the leader, which periodically lists the rest.
package customresources

// Package workspace makes a child Workspace ready for tenants: its creator's
// Membership, the default namespace, the ClusterRoles and the binding that the
// hub watches through. Its status is an annotation, because the Workspace's own
// belongs to kcp.
package workspace

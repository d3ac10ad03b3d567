// Package workspace makes a child Workspace ready for tenants: its creator's
// Membership, the default namespace, the ClusterRoles, the binding that the hub
// watches through, and what the operator's template holds. Its status is an
// annotation, because the Workspace's own belongs to kcp.
package workspace

// Package workspace reconciles child Workspaces: the Membership of the creator, the APIBinding
// through which the hub watches the Workspace, the default namespace, the ClusterRoles, the
// admission policy, and the objects of the operator's Workspace template. It deactivates what
// is soft-deleted and removes it after the grace period.
//
// # Decisions
//
//   - The hub's status of a Workspace is an annotation on kcp's Workspace object, because the
//     status of that object belongs to kcp.
//   - The creator gets an admin Membership once, because a plain member of the Organization
//     could otherwise not enter the Workspace. A creator who leaves is not added again.
//   - Ready does not wait for the admission policy to be enforced. Until then the proxy answers
//     writes of the guarded kinds with 503.
//   - Objects of the template are applied again when a tenant changed them through the proxy, and
//     all of them every nine minutes: the hub has no informers for kinds that it does not know.
package workspace

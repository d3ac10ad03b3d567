// Package workspace reconciles child Workspaces: the Membership of the creator, the APIBinding
// through which the hub watches the Workspace, the default namespace, the ClusterRoles, the
// admission policy, and the objects of the operator's Workspace template. It
// deactivates a soft-deleted Workspace and purges it after the grace period.
//
// # Decisions
//
//   - The hub's status of a Workspace is an annotation on kcp's Workspace object, because the
//     status of that object belongs to kcp.
//   - The creator gets an admin Membership once, because a plain member of the Organization
//     could otherwise not enter the Workspace. It is not created again after the creator left.
//   - A spare, which nobody owns yet, gets everything but people and the finalizer. The two conditions
//     that people make True keep it from being Ready.
//   - The admission policy is written before everything else, in a step of its own. A failed write
//     and a policy of another version set PolicyEnforced to False.
//   - Ready does not wait for the admission policy to be enforced. Until then the proxy answers
//     writes of the guarded kinds with 503.
//   - The admission policy keeps tenants from the objects of the template that are of kcp's own
//     kinds. All objects are applied every nine minutes, because the hub does not watch their
//     kinds; APIBindings are repaired at once.
package workspace

// Package tenancy holds the rules of the tenancy model as pure functions: workspace
// paths, names and IDs, roles and permissions, quotas, deletion, and the Kubernetes
// objects that follow from them. It calls no API and reads no clock, so that each rule
// stands in one place and has a table-driven test.
//
// # Rules
//
// Comments and tests cite these rules by number. Texts that users see never do.
//
//   - O-1: Organizations and Workspaces are named by UUIDs in canonical lower case; a
//     display name is metadata, may repeat, and can change without moving anything.
//   - O-2: Requests to tenant endpoints must carry the tenancy headers; there is no
//     fallback without them.
//   - O-3: Each User has one UserMembershipIndex, derived from Memberships, that lists
//     all the Organizations and Workspaces of that User.
//   - O-4: An index row holds the Organization's creation time and first admin, so that
//     a client can render its switcher from this one object.
//   - O-5: A User may have created at most 10 existing Organizations (--default-org-quota,
//     User.spec.orgQuota); soft-deleted ones count and the personal one does not.
//   - O-6: An Organization may hold at most 50 Workspaces (--default-workspace-quota,
//     Organization.spec.workspaceQuota); soft-deleted ones count.
//   - O-7: Organization.spec.workspaceCreation and spec.catalogEntryCreation say whether
//     all members or only admins may create Workspaces and CatalogEntries.
//   - O-8: Deleting a User is a request that can be undone during a grace period
//     (--deletion-grace, 30 days); meanwhile that person may only read and undelete their
//     account, and afterwards the account is removed with all that depends on it.
//   - O-9: An org Membership cannot be removed while the User has workspace Memberships
//     in that Organization, unless the removal cascades; the last admin of an
//     Organization whose Membership does not end by time can be neither removed nor demoted,
//     nor get such an end.
//   - O-10: No credential, kubeconfig or proxied request reaches a workspace that belongs
//     to the hub: the root workspace, users, providers, orgs, and each Organization's own.
//   - O-11: Every provisioning step is idempotent and is repeated until the state is
//     complete; an Organization or Workspace is Ready only when all of it is there.
//   - O-12: Members can leave by themselves, admins can change roles, and an Organization
//     can have several admins.
//   - O-13: Deleting an Organization or a Workspace follows O-8: it is hidden at once and
//     deactivated in kcp, can be undeleted during the grace period, and is then removed
//     with all its contents, children before parents. A list of what is deleted has it for
//     those who can undelete it and for those who were in it.
//   - O-14: A Bot is a ServiceAccount in one child Workspace; it never owns anything,
//     never creates bots and never counts as an admin. Only a token that the Bot lists
//     passes the hub.
//   - O-15: An admin of an Organization is an admin of each of its Workspaces, in RBAC as
//     in the REST API; the reverse never holds.
//
// # Decisions
//
//   - Membership is the source of truth. UserMembershipIndexes, ClusterRoles and bindings
//     are derived from it, and controllers restore each of them after any change.
//   - A Membership with an end gives nothing from that second on: every reader compares the end
//     with kcp's time. What an author granted before their own right ended, and a controller has
//     not carried out by then, is dropped. The creator of a Workspace is its admin no longer than
//     their right to make it lasts.
//   - A manager of a Workspace manages its name and its people, but for admins and themselves, and
//     gets nothing in it: no binding, no way through the proxy, no kubeconfig, no bots. spec.manager
//     stands beside a role or alone, and counts for no minimum of a role.
//   - A Workspace takes the billing that its Organization has in the version that its claim is written to.
//     What is given to all Workspaces of an Organization stands on the Organization, with a revision: it is
//     the billing of every Workspace whose own has a lower one. So one write changes any number of them,
//     and nothing has to be carried out.
//   - A row of the UserMembershipIndex counts only while the Membership behind it exists:
//     a stale or forged row grants nothing.
//   - A UserMembershipIndex of more than 500 rows has long display names cut, so that 2000 rows
//     fit into one object: others choose the names of the places that they put a person into.
//   - In a child Workspace, rights of people come from Memberships alone. kcp enforces it with
//     a ValidatingAdmissionPolicy that the hub keeps there: it refuses, among others, bindings
//     to subjects that are not ServiceAccounts of that Workspace. A demoted admin, an
//     accomplice or a group binding therefore leaves nothing to clean up.
//   - The role of a bot is the one that its Bot says. The policy refuses bindings whose subjects
//     are bots or can contain one: ServiceAccounts in the namespace default with a UUID for a
//     name, and the two groups that they are in.
//   - The table of the policy's rules says which kinds they are about. The proxy holds writes of
//     these kinds back while kcp does not enforce the policy.
//   - A Bot records the highest role by which kcp may authorize it, before its account is bound to
//     that role. The gate refuses the tokens of a Bot with a lower role until a
//     SubjectAccessReview and the bindings in kcp show that kcp allows no more, so that neither a
//     lag of kcp nor an older binding outlives the role.
//   - The roles of a Workspace list API groups, resources and verbs and use no wildcard: a
//     wildcard would grant the LogicalCluster, every API that a later kcp serves, and the verbs
//     escalate, bind and impersonate.
//   - The hub compares a role of spec.roles with the admin role before it is bound. kcp and the
//     policy admit no role of a tenant that the admin role does not cover. But a provider, whom kcp
//     compares with nothing in the virtual workspace of an APIExport, can write roles with any verb
//     and subresource of a tenant's API group, and an operator can write and apply any role.
//   - Workspace admins can read admission policies and webhooks but not write them: kcp
//     applies them to the hub's own writes too, so a mutating one would make its author
//     cluster-admin, and a validating one could block a demotion.
//   - Workspace admins cannot update the status of apis.kcp.io objects: kcp and the hub
//     read the applied permission claims from it.
//   - The creator of a Workspace gets its admin Membership once, with the claim of the
//     Workspace. A creator who leaves is not added again.
//   - A quota is a list of claims on the User or the Organization. A claim is one
//     compare-and-swap, made before the object it is for, so that two replicas cannot
//     both take the last place.
//   - Each token of a Bot is bound to a Secret of its own. The Bot lists the token, with the
//     UID of that Secret, before the hub returns it. The hub accepts a token only while the
//     list has its account, Secret and expiry, so a revocation does not depend on kcp's caches.
//   - The limit of Bots in a Workspace is a list of claims in an annotation of the Workspace,
//     written by compare-and-swap before the Bot is created. A claim expires after some
//     minutes, so no controller has to remove it.
//   - A CatalogEntry gives the people who may enable it the right in kcp to bind its APIExport,
//     and the hub creates the APIBinding with their credential. kcp checks that right by username
//     and not by workspace: an admin of two Organizations can bind an export of the first in a
//     Workspace of the second.
//   - Every change of a Membership, and every change of a Bot that gives it rights, is recorded
//     on the Organization by one compare-and-swap, and a controller carries the changes out in
//     order. Two admins cannot both remove each other, a crash leaves a plan instead of half a
//     change, and nothing that a person grants takes effect after the answer to their removal:
//     the author of a grant is judged at the version of the Organization that accepts it.
package tenancy

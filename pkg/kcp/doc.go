// Package kcp is the hub's client of a kcp, embedded or external: typed clients for one
// logical cluster at a time, server-side apply, and URLs. Package transport sends the
// requests and watches whether kcp is available. Package connect starts or finds the kcp
// and returns its admin's client configuration. Package informer lists and watches over
// all logical clusters. Package test/doubles/kcpfake is the kcp of unit tests.
//
// # Decisions
//
//   - While kcp is unreachable, every request is answered 503, reads from the caches
//     included, and open streams end: another replica or kcp's admin may revoke a right
//     meanwhile, and no cache of this process would show it.
//   - The token of --kcp-kubeconfig is read again when kcp refuses it, because kcp
//     gives its admin a new token at every start.
//   - If an endpoint disappears from the APIExportEndpointSlice, its informer keeps its
//     objects until another endpoint serves them, and the hub is not ready until then:
//     controllers would take missing Memberships for people who left.
//   - The outage of one shard affects only the Workspaces and Organizations on it: requests
//     for them are answered 503. The outage of the shard with the hub's own workspaces
//     counts as an outage of kcp. Informers detect an outage by their connections, without
//     probes.
//   - The hub's own workspaces are on kcp's root shard, on which the front proxy depends
//     anyway.
//   - Deletion deadlines go by kcp's clock: one replica with a wrong clock must not end
//     a grace period early.
//
// # Workarounds for kcp 0.32
//
// This list has all code that exists only because of a defect or gap of kcp 0.32. Each
// entry says when the code can be removed.
//
//   - A logical cluster is set to phase Unavailable before it gets the annotation
//     core.kcp.io/inactive. When a Ready one gets it, kcp sets the phase to Inactive and
//     ends all wildcard requests of the shard, its own informers' included, until some
//     logical cluster becomes active again. It can go when wildcard requests skip
//     inactive logical clusters.
//   - Every replica, leader or not, removes the annotation from a logical cluster of the
//     tree that kcp's admin made Inactive. If it is soft-deleted, the leader then
//     deactivates it as described above. No informer works until the annotation is
//     removed. It can go together with the entry above.
//   - Deactivation needs kcp's shard admin (the context shard-base of kcp's
//     admin.kubeconfig) or a user in system:masters: kcp's admission refuses writes to a
//     LogicalCluster's status to everybody else. The front proxy of a kcp with several
//     shards removes that group, so these writes go to the shards themselves. Without such
//     a user the hub refuses requests to deleted Workspaces and removes their bindings, and
//     a condition says so. It can go when a role can grant deactivation.
//   - Both names of the inactive annotation are removed, core.kcp.io/inactive and
//     internal.kcp.io/inactive, because kcp honours either. It can go when kcp drops the
//     second.
//   - Deactivation does without the annotation core.kcp.io/inactive if it does not fit. kcp locks
//     the name of each CustomResourceDefinition and each bound resource in one annotation of the
//     LogicalCluster, and some 900 of them fill the annotations. It can go when kcp keeps the
//     locks elsewhere.
//   - In front of an external kcp, dry runs on connections of their own show for
//     --policy-enforcement-window that kcp enforces an admission policy. Each process of a shard
//     reads policies once a second, and none tells of the others. It can go when a policy's status
//     says that it is enforced.
//   - A start with newer schemas waits until the virtual workspaces of the export describe them in their OpenAPI
//     documents. A watch prunes by the schemas that the virtual workspace had when it began, for as long as it
//     lasts. It can go when kcp ends such watches.
//   - The hub starts etcd, and replaces the certificates that kcp's etcd has (keys of P-521): kcp opens a connection to
//     etcd for each kind of each workspace. It can go when kcp shares connections, or makes other keys.
//   - kcp answers Forbidden, not NotFound, for a logical cluster that does not exist. A
//     Forbidden answer therefore does not prove that the hub lacks a right. It can go
//     when kcp answers NotFound to its admin.
//   - After the hub has removed its initializer it also sets an annotation on the
//     Workspace. kcp does not reconcile a Workspace when its LogicalCluster changes, but
//     only after a fifth of the Workspace's age. It can go when kcp enqueues it.
//   - The names of a Workspace's CustomResourceDefinitions are listed with the hub's own
//     credential and kept in an annotation on the Workspace, and a template's CRD is
//     polled until it is established. An APIExport cannot claim
//     CustomResourceDefinitions, so no informer shows them. It can go when an APIExport
//     can claim them.
//   - Informers list and watch without the streaming list (sendInitialEvents), which
//     virtual workspaces do not serve. It can go when they do.
//   - A list without a resource version is repeated. kcp returns such a list, without items
//     and with a watch that never sends an event, for a kind that the shard gets a moment
//     later with its first binding. It can go when kcp answers NotFound until then.
//   - A permission claim that somebody rejected is accepted again only after kcp has
//     removed it from status.appliedPermissionClaims. If it were accepted earlier, the
//     claimed objects would stay invisible for ever. It can go when kcp reconciles labels
//     of claims by their spec.
//   - kcp does not let the selector of a permission claim change: such a claim is
//     removed in one pass and added in the next. It can go when the selector is mutable.
//   - The admission policy of Workspaces refuses APIResourceSchemas in the API groups of
//     kcp. kcp binds a schema of a kind that it serves itself, and then takes the policies
//     for this kind from the workspace of the APIExport. It can go when kcp refuses such
//     schemas.
//   - The policy refuses tenants CustomResourceDefinitions in these groups, too: kcp accepts them and serves its own
//     kinds in their place. It can go when kcp refuses them.
//   - The policy refuses columns of definitions whose jsonPath descends or branches. kcp checks only that it begins
//     with a dot, and keeps all that such a path finds in each object that it lists as a table. It can go when kcp
//     bounds that.
//   - The proxy bounds the actions of a role, and has the roles and bindings of a payer written in turn. kcp makes a
//     rule of each action in memory before it asks the policy, and compares each with every rule of the author. It can
//     go when kcp bounds both.
//   - The proxy refuses YAML with aliases, in which a long text can be named and repeated: kcp converts it to JSON with
//     all repetitions. It can go when kcp bounds what it converts to.
//   - The admission policy of Workspaces compares roles with the admin role. In the virtual
//     workspace of an APIExport, kcp does not compare a role with the rights of its author.
//     It can go when kcp does.
//   - After a start, kcp needs most of a second for the first write to each logical
//     cluster, so package bootstrap writes to several in parallel. It can go when that is
//     fast.
//   - The embedded kcp is configured as one API server (MasterCount 1). As one of three,
//     which is kcp's default, it delays every new CRD by five seconds. It can go when kcp
//     offers a flag.
//
// # Limits of kcp 0.32 that the hub does not hide
//
//   - kcp fetches the keys of an identity provider again only when the max-age of the last
//     answer is over. After a rotation the hub accepts tokens with the new key at once, and
//     kcp answers 401 to them until then. A provider that publishes a key for that long before
//     it signs with it is not affected. It can go when kcp's authenticator asks for a key that
//     it does not know.
//   - kcp keeps a kind locked for minutes after its CustomResourceDefinition was deleted, and an
//     APIBinding with that kind waits until then. It can go when kcp removes the lock together
//     with the CustomResourceDefinition.
//   - kcp verifies no EdDSA signatures of ID tokens: people of an identity provider that uses
//     them can use the REST API only. It can go when kcp's authenticator verifies them.
package kcp

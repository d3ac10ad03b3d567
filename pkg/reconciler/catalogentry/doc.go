// Package catalogentry reconciles CatalogEntries. It copies facts about the APIExport of an entry
// from kcp to the status, grants the right to bind that export to the people who may enable the
// entry, and probes whether the server of the provider answers.
//
// kcp checks the right to bind in the workspace of the export, and only when an APIBinding is
// created or its reference to an export changes. The controller keeps a ClusterRole and a
// ClusterRoleBinding for each entry there, and removes them when the entry is deleted, clashes
// with another one, loses its export, or when its Organization is soft-deleted. A child
// Workspace reports changes of these objects by itself. Nothing reports them for workspaces of
// providers, so the controller reads those every minute, together with the export.
//
// The grant of an entry of an Organization lasts as long as the right of its publisher. Each pass,
// about once a minute, asks again: the publisher is an active member of the Organization, and an
// admin of the Workspace that has the export or, for the export of a provider, somebody whom the
// RBAC of its workspace lets bind it. What the hub itself grants there does not count, because
// entries would otherwise vouch for themselves and for each other; a Global entry of the export
// counts. A SubjectAccessReview cannot leave bindings out, and a SubjectAccessReview about somebody
// without access to the workspace needs system:masters. Therefore the hub reads the
// ClusterRoleBindings that are not its own, and the ClusterRoles of those that name the publisher or
// system:authenticated. A right that ended withdraws the grant and hides the entry; what is enabled
// stays so. While kcp does not answer, the last verdict holds. spec.publishedBy never changes:
// another person takes an entry over by deleting it and publishing it again, under the same slug
// and with the same UUID.
//
// A provider that no longer wants an Organization to bind its export takes the right of the
// publisher away. The controller restores a grant that was removed by hand.
//
// The deletion of an entry waits at most a minute if the workspace of its provider is deactivated.
// The grant then stays in that workspace without effect, and is removed when the controller finds
// the export of an entry there again.
//
// A separate controller probes servers, so that slow servers delay no entry. An Organization has at
// most two probes at a time, and all Organizations with slow servers share half of the workers, so
// that they do not delay the probes of the others.
package catalogentry

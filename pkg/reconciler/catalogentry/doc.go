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
// The grant belongs to the entry. The hub checks the right of the publisher only when the entry is
// published: if the publisher leaves or loses the right to bind, the grant to the others stays. A
// provider that no longer wants an Organization to bind its export must delete the entry, because
// the controller restores a grant that was removed by hand.
//
// The deletion of an entry waits at most a minute if the workspace of its provider is deactivated.
// The grant then stays in that workspace without effect, and is removed when the controller finds
// the export of an entry there again.
//
// A separate controller probes servers, so that slow servers delay no entry. An Organization has at
// most two probes at a time, and all Organizations with slow servers share half of the workers, so
// that they do not delay the probes of the others.
package catalogentry

// Package catalogentry reconciles CatalogEntries: what kcp knows of the APIExport of each, the
// right of its audience to bind that export, and whether the server of the provider answers.
//
// kcp asks for the right to bind in the workspace of the export, and only when an APIBinding is
// created or begins to refer to another export. The controller keeps a ClusterRole and a
// ClusterRoleBinding for each entry there, and removes them when the entry is deleted, clashes
// with another one, loses its export, or when its Organization is soft-deleted. A child
// Workspace reports changes of these objects by itself. Nothing reports them for workspaces of
// providers, so the controller reads those every minute, together with the export.
//
// The grant belongs to the entry: what its publisher may do is asked for once, when the entry is
// published, and a publisher who loses the right to bind, or leaves, takes nothing from the
// others. A provider that no longer wants an Organization to bind its export asks for the removal
// of the entry: the controller would restore a grant that was removed by hand.
//
// A deleted entry waits a minute for a provider whose workspace is deactivated. Its grant then
// stays there, without effect while the workspace is deactivated, and is removed when the export
// of an entry is found there again.
//
// Servers are probed by a controller of its own, so that slow ones delay no entry. One
// Organization has two probes at once, and all those with slow servers together have half of the
// workers, so that they do not delay the probes of the others.
package catalogentry

// Package catalog serves the CatalogEntries of an Organization, under /api/orgs/{org}/catalog,
// and the Global ones, under /api/admin/catalog.
//
// The name of an entry follows from its place and slug, so that kcp refuses a second one there.
// A slug is unique across places, too: an Organization's entry may not have the slug of a Global
// one. No one write can ensure that, so a create writes first and then reads the other place from
// kcp. Of two that are created at the same time at least one sees the other and withdraws. If a
// hub crashes in between, the younger entry stays and is not shown; its condition says why.
//
// The number of entries of an Organization is limited in the same way: a create writes, counts in
// kcp and withdraws if there are too many. Requests for the last place at the same moment can thus
// all be refused, and are to be repeated. The limit is exceeded only if a hub crashes in between,
// by one, and by what platform admins apply in kcp.
//
// The hub binds nothing for people that they could not bind themselves. An export of a provider
// is published by people who may bind it: kcp is asked, by a dry run of an APIBinding with the
// caller's own credential, in a Workspace of the Organization of which the caller is admin. There
// kcp lets the caller create APIBindings, so that its answer is about the export alone. Who is
// admin of no Workspace is refused.
package catalog

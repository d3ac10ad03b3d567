// Package catalog serves the CatalogEntries of an Organization, under /api/orgs/{org}/catalog,
// and the Global ones, under /api/admin/catalog.
//
// The name of an entry is derived from its scope and slug, so that kcp refuses a second one in the
// same scope. A slug is also unique across scopes: an Organization's entry may not have the slug of
// a Global one. No single write can ensure that, so a create writes first and then reads the other
// scope from kcp. Of two requests at the same time at least one sees the other's entry and deletes
// its own. If a hub crashes in between, the younger entry stays and is not shown; its condition
// says why.
//
// The number of entries of an Organization is limited in the same way: a create writes, counts in
// kcp, and deletes its entry if there are too many. Simultaneous requests for the last place may
// all be refused, and can be repeated. The limit is exceeded only by entries that platform admins
// apply in kcp, and by one if a hub crashes in between.
//
// A person can publish only an export that they may bind themselves. The hub asks kcp by a dry run
// of an APIBinding with the caller's own credential, in a Workspace of the Organization of which
// the caller is admin. There kcp lets the caller create APIBindings, so that its answer is about
// the export alone. A caller without such a Workspace is refused. The entry says by whose right it
// is offered (spec.publishedBy), which no request can set, and the controller asks again about once
// a minute.
//
// A slug holds no name against the platform: a Global entry takes it with ?force=true, and the entries
// of Organizations then clash with it. Platform admins list and delete the entries of Organizations.
package catalog

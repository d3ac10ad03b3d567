package views

import (
	"slices"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// catalog finds CatalogEntries. It keeps entries of all logical clusters, because at the start the
// entries of an Organization may come before the Organization; readers ask for those of an
// Organization or for the Global ones.
type catalog struct {
	topology *topology
	// global is the logical cluster of the Global entries.
	global string

	names, clusters, slugs *index[string, *v1alpha1.CatalogEntry]
	exports                *index[exportIn, *v1alpha1.CatalogEntry]
}

// exportIn is an APIExport that entries in a logical cluster name.
type exportIn struct {
	cluster string
	ref     v1alpha1.APIExportRef
}

func newCatalog(t *topology, global string) catalog {
	return catalog{
		topology: t, global: global,
		names:    newIndex(func(e *v1alpha1.CatalogEntry) []string { return []string{e.Name} }),
		clusters: newIndex(func(e *v1alpha1.CatalogEntry) []string { return []string{kcp.ClusterOf(e)} }),
		slugs:    newIndex(func(e *v1alpha1.CatalogEntry) []string { return []string{e.Spec.Slug} }),
		exports: newIndex(func(e *v1alpha1.CatalogEntry) []exportIn {
			return []exportIn{{kcp.ClusterOf(e), e.Spec.APIExport}}
		}),
	}
}

func (c catalog) indexes() []indexed[*v1alpha1.CatalogEntry] {
	return []indexed[*v1alpha1.CatalogEntry]{c.names, c.clusters, c.slugs, c.exports}
}

// clusterOf is the logical cluster of the entries of an Organization, or of the Global ones if
// org is empty; empty for an Organization without one.
func (c catalog) clusterOf(org string) string {
	if org == "" {
		return c.global
	}
	return c.topology.clusterOf(org)
}

// hasEntries reports whether entries in a logical cluster count.
func (c catalog) hasEntries(cluster string) bool {
	return cluster == c.global || c.topology.Cluster(cluster).Kind == tenancy.ClusterOrg
}

// CatalogEntry finds a CatalogEntry by name in the logical cluster of an Organization, or in
// that of the Global ones.
func (c catalog) CatalogEntry(cluster, name string) (*v1alpha1.CatalogEntry, bool) {
	for _, e := range c.names.all(name) {
		if kcp.ClusterOf(e) == cluster && c.hasEntries(cluster) {
			return e, true
		}
	}
	return nil, false
}

// CatalogEntryIn finds a CatalogEntry of an Organization by name, or a Global one if org is
// empty.
func (c catalog) CatalogEntryIn(org, name string) (*v1alpha1.CatalogEntry, bool) {
	return c.CatalogEntry(c.clusterOf(org), name)
}

// CatalogEntriesOf returns the CatalogEntries that live in an Organization, or the Global ones
// if org is empty, in no order. It includes those that are being deleted and those that clash.
func (c catalog) CatalogEntriesOf(org string) []*v1alpha1.CatalogEntry {
	return c.clusters.all(c.clusterOf(org))
}

// CatalogEntryNamed finds a CatalogEntry of any Organization by name. org is the UUID of the
// Organization.
func (c catalog) CatalogEntryNamed(name string) (e *v1alpha1.CatalogEntry, org string, ok bool) {
	for _, e := range c.names.all(name) {
		if cluster := kcp.ClusterOf(e); cluster != c.global && c.hasEntries(cluster) {
			return e, c.topology.Cluster(cluster).OrgUUID, true
		}
	}
	return nil, "", false
}

// byExport returns the CatalogEntries of an APIExport that the people of an Organization see,
// their own and Global ones, as tenancy.ScopedEntry orders them.
func (c catalog) byExport(org string, ref v1alpha1.APIExportRef) (found []tenancy.ScopedEntry) {
	for _, of := range slices.Compact([]string{"", org}) {
		for _, e := range c.exports.all(exportIn{c.clusterOf(of), ref}) {
			found = append(found, tenancy.ScopedEntry{Entry: e, Global: of == ""})
		}
	}
	found = slices.DeleteFunc(found, func(p tenancy.ScopedEntry) bool {
		return !p.Entry.DeletionTimestamp.IsZero() || c.clashes(org, p)
	})
	slices.SortFunc(found, tenancy.ScopedEntry.Compare)
	return found
}

// CatalogClash returns the entry in the way of a CatalogEntry, as tenancy.CatalogClash defines
// it, and the Organization that it lives in, which is empty for a Global one. org is that of e,
// and empty for a Global one.
func (c catalog) CatalogClash(org string, e *v1alpha1.CatalogEntry) (other *v1alpha1.CatalogEntry, in string, ok bool) {
	own := tenancy.ScopedEntry{Entry: e, Global: org == ""}
	var others []tenancy.ScopedEntry
	for _, o := range c.slugs.all(e.Spec.Slug) {
		cluster := kcp.ClusterOf(o)
		global := cluster == c.global
		if global || own.Global && c.hasEntries(cluster) || !own.Global && cluster == c.clusterOf(org) {
			others = append(others, tenancy.ScopedEntry{Entry: o, Global: global})
		}
	}
	first, ok := tenancy.CatalogClash(own, others)
	if !ok {
		return nil, "", false
	}
	return first.Entry, c.topology.Cluster(kcp.ClusterOf(first.Entry)).OrgUUID, true
}

func (c catalog) clashes(org string, p tenancy.ScopedEntry) bool {
	if p.Global {
		org = ""
	}
	_, _, ok := c.CatalogClash(org, p.Entry)
	return ok
}

// CatalogClusters returns the logical clusters in which there are CatalogEntries with a slug, in
// no order: those of Organizations, and that of the Global ones.
func (c catalog) CatalogClusters(slug string) (clusters []string) {
	for _, e := range c.slugs.all(slug) {
		if cluster := kcp.ClusterOf(e); e.DeletionTimestamp.IsZero() && c.hasEntries(cluster) {
			clusters = append(clusters, cluster)
		}
	}
	return clusters
}

// CatalogKeysOfSlug returns the keys of the CatalogEntries that can clash with one of a logical
// cluster that has the slug, in no order: for a Global entry those of all places, for another
// one the Global ones and those of its own Organization.
func (c catalog) CatalogKeysOfSlug(cluster, slug string) (found []Key) {
	for _, e := range c.slugs.all(slug) {
		if key := keyOf(e); cluster == c.global || key.Cluster == c.global || key.Cluster == cluster {
			found = append(found, key)
		}
	}
	return found
}

// CatalogEntryKeys returns the keys of the CatalogEntries of all Organizations and of the Global
// ones, in no order.
func (c catalog) CatalogEntryKeys() (found []Key) {
	for _, e := range c.names.values() {
		if key := keyOf(e); c.hasEntries(key.Cluster) {
			found = append(found, key)
		}
	}
	return found
}

// catalogRefs has the catalog that the entry is in.
func (v *Views) catalogRefs(cluster string, _ *v1alpha1.CatalogEntry) []tenancy.Ref {
	if cluster == v.global {
		return []tenancy.Ref{tenancy.CatalogRef()}
	}
	return v.clusterRefs(cluster)
}

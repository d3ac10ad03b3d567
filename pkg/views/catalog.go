package views

import (
	"maps"
	"slices"
	"sync"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// catalog finds CatalogEntries by the logical cluster that they live in, by export and by slug.
// It keeps entries of all logical clusters, because at the start the entries of an Organization
// may come before the Organization; readers ask for those of an Organization or for the Global
// ones.
type catalog struct {
	topology *topology
	// global is the logical cluster of the Global entries.
	global string

	mu       sync.RWMutex
	entries  map[string]map[string]*v1alpha1.CatalogEntry
	byExport map[exportIn]map[string]*v1alpha1.CatalogEntry
	bySlug   map[string]map[Key]*v1alpha1.CatalogEntry
}

// exportIn is an APIExport that entries in a logical cluster name.
type exportIn struct {
	cluster string
	ref     v1alpha1.APIExportRef
}

func newCatalog(t *topology, global string) catalog {
	return catalog{
		topology: t, global: global,
		entries:  map[string]map[string]*v1alpha1.CatalogEntry{},
		byExport: map[exportIn]map[string]*v1alpha1.CatalogEntry{},
		bySlug:   map[string]map[Key]*v1alpha1.CatalogEntry{},
	}
}

func (c *catalog) change(cluster string, old, new *v1alpha1.CatalogEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old != nil {
		remove(c.entries, cluster, old.Name)
		remove(c.byExport, exportIn{cluster, old.Spec.APIExport}, old.Name)
		remove(c.bySlug, old.Spec.Slug, Key{cluster, old.Name})
	}
	if new != nil {
		put(c.entries, cluster, new.Name, new)
		put(c.byExport, exportIn{cluster, new.Spec.APIExport}, new.Name, new)
		put(c.bySlug, new.Spec.Slug, Key{cluster, new.Name}, new)
	}
}

func (c *catalog) count() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	n := 0
	for _, in := range c.entries {
		n += len(in)
	}
	return n
}

// clusterOf is the logical cluster of the entries of an Organization, or of the Global ones if
// org is empty; empty for an Organization without one.
func (c *catalog) clusterOf(org string) string {
	if org == "" {
		return c.global
	}
	return c.topology.clusterOf(org)
}

// hasEntries reports whether entries in a logical cluster count.
func (c *catalog) hasEntries(cluster string) bool {
	return cluster == c.global || c.topology.cluster(cluster).Kind == tenancy.ClusterOrg
}

// CatalogEntryKeys returns the keys of the CatalogEntries of all Organizations and of the Global
// ones, in no order.
func (v *Views) CatalogEntryKeys() (found []Key) {
	c := &v.catalog
	c.mu.RLock()
	defer c.mu.RUnlock()
	for cluster, in := range c.entries {
		if !c.hasEntries(cluster) {
			continue
		}
		for name := range in {
			found = append(found, Key{cluster, name})
		}
	}
	return found
}

// CatalogEntry finds a CatalogEntry by name in the logical cluster of an Organization, or in
// that of the Global ones.
func (v *Views) CatalogEntry(cluster, name string) (*v1alpha1.CatalogEntry, bool) {
	c := &v.catalog
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, ok := c.entries[cluster][name]
	return e, ok && c.hasEntries(cluster)
}

// CatalogEntryIn finds a CatalogEntry of an Organization by name, or a Global one if org is
// empty.
func (v *Views) CatalogEntryIn(org, name string) (*v1alpha1.CatalogEntry, bool) {
	c := &v.catalog
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, ok := c.entries[c.clusterOf(org)][name]
	return e, ok
}

// CatalogEntriesOf returns the CatalogEntries that live in an Organization, or the Global ones
// if org is empty, in no order. It includes those that are being deleted and those that clash.
func (v *Views) CatalogEntriesOf(org string) []*v1alpha1.CatalogEntry {
	c := &v.catalog
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Collect(maps.Values(c.entries[c.clusterOf(org)]))
}

// CatalogEntryNamed finds a CatalogEntry of any Organization by name. org is the UUID of the
// Organization.
func (v *Views) CatalogEntryNamed(name string) (e *v1alpha1.CatalogEntry, org string, ok bool) {
	c := &v.catalog
	c.mu.RLock()
	defer c.mu.RUnlock()
	for cluster, in := range c.entries {
		if e, ok := in[name]; ok && cluster != c.global && c.hasEntries(cluster) {
			return e, c.topology.cluster(cluster).OrgUUID, true
		}
	}
	return nil, "", false
}

// catalogEntriesByExport returns the CatalogEntries of an APIExport that the people of an
// Organization see, their own and Global ones, as tenancy.ScopedEntry orders them.
func (v *Views) catalogEntriesByExport(org string, ref v1alpha1.APIExportRef) (found []tenancy.ScopedEntry) {
	c := &v.catalog
	c.mu.RLock()
	for _, of := range slices.Compact([]string{"", org}) {
		for _, e := range c.byExport[exportIn{c.clusterOf(of), ref}] {
			found = append(found, tenancy.ScopedEntry{Entry: e, Global: of == ""})
		}
	}
	c.mu.RUnlock()
	found = slices.DeleteFunc(found, func(p tenancy.ScopedEntry) bool {
		return !p.Entry.DeletionTimestamp.IsZero() || v.clashes(org, p)
	})
	slices.SortFunc(found, tenancy.ScopedEntry.Compare)
	return found
}

// CatalogClash returns the entry in the way of a CatalogEntry, as tenancy.CatalogClash defines
// it, and the Organization that it lives in, which is empty for a Global one. org is that of e,
// and empty for a Global one.
func (v *Views) CatalogClash(org string, e *v1alpha1.CatalogEntry) (other *v1alpha1.CatalogEntry, in string, ok bool) {
	own := tenancy.ScopedEntry{Entry: e, Global: org == ""}
	var others []tenancy.ScopedEntry
	for key, o := range v.withSlug(e.Spec.Slug) {
		global := key.Cluster == v.catalog.global
		if global || own.Global && v.catalog.hasEntries(key.Cluster) || !own.Global && key.Cluster == v.catalog.clusterOf(org) {
			others = append(others, tenancy.ScopedEntry{Entry: o, Global: global})
		}
	}
	first, ok := tenancy.CatalogClash(own, others)
	if !ok {
		return nil, "", false
	}
	return first.Entry, v.topology.cluster(kcp.ClusterOf(first.Entry)).OrgUUID, true
}

// CatalogClusters returns the logical clusters in which there are CatalogEntries with a slug, in
// no order: those of Organizations, and that of the Global ones.
func (v *Views) CatalogClusters(slug string) (clusters []string) {
	for key, e := range v.withSlug(slug) {
		if e.DeletionTimestamp.IsZero() && v.catalog.hasEntries(key.Cluster) {
			clusters = append(clusters, key.Cluster)
		}
	}
	return clusters
}

func (v *Views) clashes(org string, p tenancy.ScopedEntry) bool {
	if p.Global {
		org = ""
	}
	_, _, ok := v.CatalogClash(org, p.Entry)
	return ok
}

// CatalogKeysOfSlug returns the keys of the CatalogEntries that can clash with one of a logical
// cluster that has the slug, in no order: for a Global entry those of all places, for another
// one the Global ones and those of its own Organization.
func (v *Views) CatalogKeysOfSlug(cluster, slug string) (found []Key) {
	global := v.catalog.global
	for key := range v.withSlug(slug) {
		if cluster == global || key.Cluster == global || key.Cluster == cluster {
			found = append(found, key)
		}
	}
	return found
}

// withSlug returns the entries that have a slug, wherever they live.
func (v *Views) withSlug(slug string) map[Key]*v1alpha1.CatalogEntry {
	v.catalog.mu.RLock()
	defer v.catalog.mu.RUnlock()
	return maps.Clone(v.catalog.bySlug[slug])
}

// catalogRefs has the catalog that the entry is in.
func (v *Views) catalogRefs(cluster string, _ *v1alpha1.CatalogEntry) []tenancy.Ref {
	if cluster == v.catalog.global {
		return []tenancy.Ref{tenancy.CatalogRef()}
	}
	return v.clusterRefs(cluster)
}

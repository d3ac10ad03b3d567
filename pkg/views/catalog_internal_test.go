package views

import (
	"slices"
	"testing"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const rivalUUID = "231a151a-434e-4623-ad6e-000000000000"

// catalogViews are views of two Organizations, whose workspaces are "acme" and "rival".
func catalogViews(t *testing.T) (*Views, func(old, new *v1alpha1.CatalogEntry)) {
	t.Helper()
	v := newViews(t)
	for name, cluster := range map[string]string{orgUUID: "acme", rivalUUID: "rival"} {
		ws := &kcptenancyv1alpha1.Workspace{}
		ws.Name, ws.Spec.Cluster = name, cluster
		v.workspace("o", nil, ws)
	}
	return v, v.CatalogEntries.handle
}

func catalogEntry(cluster, name, slug string, age time.Duration) *v1alpha1.CatalogEntry {
	e := &v1alpha1.CatalogEntry{Spec: v1alpha1.CatalogEntrySpec{Slug: slug, APIExport: v1alpha1.APIExportRef{Path: "root:p:" + slug, Name: slug}}}
	e.Name, e.UID, e.Annotations = name, types.UID(cluster+name), map[string]string{"kcp.io/cluster": cluster}
	e.CreationTimestamp = metav1.NewTime(time.Unix(1e9, 0).Add(-age))
	return e
}

func byExport(v *Views, org string, ref v1alpha1.APIExportRef) (*v1alpha1.CatalogEntry, bool) {
	found := v.byExport(org, ref)
	if len(found) == 0 {
		return nil, false
	}
	return found[0].Entry, true
}

func names(entries []*v1alpha1.CatalogEntry) (all []string) {
	for _, e := range entries {
		all = append(all, e.Name)
	}
	slices.Sort(all)
	return all
}

func TestCatalog_isFoundByPlaceAndExport(t *testing.T) {
	t.Parallel()
	v, change := catalogViews(t)
	global, own := catalogEntry("p", "g", "widgets", time.Hour), catalogEntry("acme", "a", "gadgets", time.Hour)
	for _, e := range []*v1alpha1.CatalogEntry{global, own, catalogEntry("rival", "r", "tools", 0), catalogEntry("elsewhere", "x", "widgets", 2*time.Hour), catalogEntry("o", "y", "gadgets", 2*time.Hour)} {
		change(nil, e)
	}
	require.Equal(t, []string{"g"}, names(v.CatalogEntriesOf("")))
	require.Equal(t, []string{"a"}, names(v.CatalogEntriesOf(orgUUID)))
	require.Empty(t, v.CatalogEntriesOf(wsUUID), "no such Org")
	require.ElementsMatch(t, []Key{{"p", "g"}, {"acme", "a"}, {"rival", "r"}}, v.CatalogEntryKeys(), "those of foreign logical clusters do not count")

	got, ok := v.CatalogEntry("acme", "a")
	require.True(t, ok)
	require.Equal(t, own, got)
	_, ok = v.CatalogEntry("elsewhere", "x")
	require.False(t, ok)
	_, ok = v.CatalogEntryIn(orgUUID, "r")
	require.False(t, ok)
	_, ok = v.CatalogEntryIn(rivalUUID, "r")
	require.True(t, ok)
	_, ok = v.CatalogEntryIn("", "g")
	require.True(t, ok)

	for name, org := range map[string]string{"a": orgUUID, "r": rivalUUID, "g": "", "x": "", "y": ""} {
		_, in, ok := v.CatalogEntryNamed(name)
		require.Equal(t, org, in, name)
		require.Equal(t, org != "", ok, "%s: entries of Organizations alone", name)
	}

	got, ok = byExport(v, orgUUID, global.Spec.APIExport)
	require.True(t, ok, "an entry elsewhere with the slug is in nobody's way")
	require.Equal(t, "g", got.Name)
	_, ok = byExport(v, orgUUID, own.Spec.APIExport)
	require.True(t, ok)
	_, ok = byExport(v, rivalUUID, own.Spec.APIExport)
	require.False(t, ok, "it is another Organization's")
	_, ok = byExport(v, "", global.Spec.APIExport)
	require.True(t, ok)

	change(own, nil)
	_, ok = byExport(v, orgUUID, own.Spec.APIExport)
	require.False(t, ok)
	require.Empty(t, v.CatalogEntriesOf(orgUUID))
	require.Equal(t, 4, v.CatalogEntries.objects())
}

func TestCatalog_knowsWhatIsInTheWay(t *testing.T) {
	t.Parallel()
	v, change := catalogViews(t)
	older, younger := catalogEntry("acme", "a", "widgets", time.Hour), catalogEntry("p", "g", "widgets", time.Minute)
	foreign := catalogEntry("rival", "r", "widgets", 30*time.Minute)
	change(nil, older)
	change(nil, foreign)
	_, _, ok := v.CatalogClash(rivalUUID, foreign)
	require.False(t, ok, "two Organizations may have one slug")
	got, ok := byExport(v, rivalUUID, foreign.Spec.APIExport)
	require.True(t, ok)
	require.Equal(t, "r", got.Name)

	change(nil, younger)
	first, in, ok := v.CatalogClash(orgUUID, older)
	require.True(t, ok)
	require.Equal(t, []string{"g", ""}, []string{first.Name, in})
	_, _, ok = v.CatalogClash("", younger)
	require.False(t, ok, "no Organization hides a Global entry")
	for _, org := range []string{orgUUID, rivalUUID} {
		got, ok = byExport(v, org, younger.Spec.APIExport)
		require.True(t, ok)
		require.Equal(t, "g", got.Name, "a clashing entry is enabled nowhere")
	}

	require.ElementsMatch(t, []Key{{"acme", "a"}, {"p", "g"}}, v.CatalogKeysOfSlug("acme", "widgets"), "the entries of other Organizations have nothing to do with it")
	require.ElementsMatch(t, []Key{{"acme", "a"}, {"p", "g"}, {"rival", "r"}}, v.CatalogKeysOfSlug("p", "widgets"))

	change(nil, catalogEntry("elsewhere", "x", "widgets", 0))
	require.ElementsMatch(t, []string{"acme", "p", "rival"}, v.CatalogClusters("widgets"))
	require.Empty(t, v.CatalogClusters("gadgets"))

	change(older, nil)
	change(foreign, nil)
	_, _, ok = v.CatalogClash("", younger)
	require.False(t, ok)
	twin := catalogEntry("p", "h", "widgets", time.Second)
	change(nil, twin)
	first, in, ok = v.CatalogClash("", twin)
	require.True(t, ok, "two of one place")
	require.Equal(t, []string{"g", ""}, []string{first.Name, in})
}

func TestCatalog_wakesThoseWhoWait(t *testing.T) {
	t.Parallel()
	v, _ := catalogViews(t)
	require.Equal(t, []tenancy.Ref{tenancy.CatalogRef()}, v.catalogRefs("p", nil))
	require.Equal(t, []tenancy.Ref{tenancy.OrgRef(orgUUID)}, v.catalogRefs("acme", nil))
}

func TestCatalog_isCachedWithoutWhatNobodyReads(t *testing.T) {
	t.Parallel()
	v, _ := catalogViews(t)
	e := catalogEntry("acme", "a", "widgets", 0)
	e.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = "long"
	e.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	v.CatalogEntries.transform(e)
	require.Nil(t, e.ManagedFields)
	require.Equal(t, map[string]string{"kcp.io/cluster": "acme"}, e.Annotations)
}

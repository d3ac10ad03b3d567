package catalog

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// fresh is a name that no other test uses, for what all who share a tree see: the workspaces of providers and
// the slugs of Global entries.
func fresh() string { return strings.TrimPrefix(framework.NewRoot(), "root:") }

// exampleEntry is the Global entry of config/example-catalog with another slug, and the name that it has by its slug.
func exampleEntry(t testing.TB, slug, path string) string {
	t.Helper()
	manifest := framework.ExampleCatalog(t, "entry.yaml", path)
	named := func(slug string) string {
		return "\n  name: " + tenancy.CatalogEntryName("", slug) + "\nspec:\n  slug: " + slug + "\n"
	}
	require.Contains(t, manifest, named("widgets"))
	return strings.Replace(manifest, named("widgets"), named(slug), 1)
}

// What the manifests of the example say in their comments.
func TestExample_isAProviderAndAGlobalEntry(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	p := kcp.Platform(t, hub.Options.RootWorkspace)
	providers := p.Root + ":providers"
	export, slug := framework.Provider(t, kcp, providers+":"+fresh()), fresh()
	kcp.Applies(t, providers, exampleEntry(t, slug, export.Path))

	entry, err := p.CatalogEntries(providers).Get(t.Context(), tenancy.CatalogEntryName("", slug), metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, export, entry.Spec.APIExport)
	require.NoError(t, tenancy.CheckCatalogSpec(entry.Spec, false))
	held, err := p.APIExports(export.Path).Get(t.Context(), export.Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.Len(t, held.Spec.Resources, 2)
	claim := held.Spec.PermissionClaims[1]
	require.True(t, tenancy.DangerousClaim(claim.Group, claim.Resource, claim.Verbs, claim.DefaultSelector))
	claim = held.Spec.PermissionClaims[0]
	require.False(t, tenancy.DangerousClaim(claim.Group, claim.Resource, claim.Verbs, claim.DefaultSelector), "the control")
}

package catalog

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// What the manifests of the example say in their comments.
func TestExample_isAProviderAndAGlobalEntry(t *testing.T) {
	t.Parallel()
	hub := framework.StartHub(t, kcp, framework.NewRoot())
	p := kcp.Platform(t, hub.Options.RootWorkspace)
	providers := p.Root + ":providers"
	export := framework.Provider(t, kcp, providers+":widgets")
	kcp.Applies(t, providers, framework.ExampleCatalog(t, "entry.yaml", export.Path))

	entry, err := p.CatalogEntries(providers).Get(t.Context(), tenancy.CatalogEntryName("", "widgets"), metav1.GetOptions{})
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

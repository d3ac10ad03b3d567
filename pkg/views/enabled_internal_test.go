package views

import (
	"testing"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestEnabled_findsTheWorkspacesOfAnExport(t *testing.T) {
	t.Parallel()
	v, change := catalogViews(t)
	ws := &kcptenancyv1alpha1.Workspace{}
	ws.Name, ws.Spec.Cluster = wsUUID, "dev"
	ws.Annotations = map[string]string{"kcp.io/cluster": "acme"}
	v.workspace("acme", nil, ws)
	binding := func(name, slug string) *kcpapisv1alpha2.APIBinding {
		b := &kcpapisv1alpha2.APIBinding{}
		b.Name, b.Annotations = name, map[string]string{"kcp.io/cluster": "dev"}
		b.Spec.Reference.Export = &kcpapisv1alpha2.ExportBindingReference{Path: "root:p:" + slug, Name: slug}
		return b
	}
	entry := catalogEntry("acme", wsUUID, "widgets", 0)
	ref, publish := entry.Spec.APIExport, v.Bindings.handle
	one, two := binding("one", "widgets"), binding("two", "widgets")
	publish(nil, one)
	publish(nil, two)
	publish(nil, binding("access", tenancy.ExportAccess))
	require.Equal(t, []Key{{"acme", wsUUID}}, v.WorkspacesBinding(ref))
	for org, n := range map[string]int{"acme": 1, "": 1, "globex": 0} {
		require.Equal(t, n, v.WorkspacesEnabling(ref, org), org)
	}
	require.Empty(t, v.WorkspacesBinding(v1alpha1.APIExportRef{Path: "root:p:" + tenancy.ExportAccess, Name: tenancy.ExportAccess}), "all Workspaces bind it")
	publish(one, nil)
	require.Len(t, v.WorkspacesBinding(ref), 1)

	require.Empty(t, v.MemberResources("dev", two), "no entry limits it")
	entry.Spec.MemberResources = []string{"widgets"}
	change(nil, entry)
	require.Empty(t, v.MemberResources("dev", two), "the binding is not of the entry")
	two.Annotations[v1alpha1.CatalogEntryAnnotation] = `{"uuid":"` + wsUUID + `","slug":"widgets","displayName":"Widgets","memberResources":["gadgets"]}`
	require.Equal(t, []string{"widgets"}, v.MemberResources("dev", two))
	change(entry, nil)
	require.Equal(t, []string{"gadgets"}, v.MemberResources("dev", two), "the limit outlives the entry")

	publish(two, nil)
	require.Empty(t, v.WorkspacesBinding(ref))
	require.Empty(t, v.enabled.first)
}

package bootstrap

import (
	"io/fs"
	"testing"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/config"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestManifests_render(t *testing.T) {
	t.Parallel()
	tree, err := tenancy.NewTree("root:some:place")
	require.NoError(t, err)
	files, err := fs.Glob(config.KCP, "kcp/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			documents, err := render(file[len("kcp/"):], values{Tree: tree, TenancyIdentity: "abc", Resources: `[{"name":"x"}]`})
			require.NoError(t, err)
			require.NotEmpty(t, documents)
			for _, d := range documents {
				var object struct {
					Kind     string `json:"kind"`
					Metadata struct {
						Name string `json:"name"`
					} `json:"metadata"`
				}
				require.NoError(t, yaml.Unmarshal(d, &object))
				require.NotEmpty(t, object.Kind)
				require.NotEmpty(t, object.Metadata.Name)
				require.NotContains(t, string(d), "{{")
			}
		})
	}
}

// The bindings that an Org's own workspace is held to are those of its type, with the
// claims of the exports.
func TestOrgBindings_matchTheWorkspaceType(t *testing.T) {
	t.Parallel()
	tree, err := tenancy.NewTree("root:some:place")
	require.NoError(t, err)
	v := values{Tree: tree, TenancyIdentity: "abc", Resources: `[]`}
	bindings, err := orgBindings(v, "providers-id")
	require.NoError(t, err)
	bound := map[tenancyv1alpha1.APIExportReference]*apisv1alpha2.APIBinding{}
	for _, b := range bindings {
		bound[tenancyv1alpha1.APIExportReference{Path: b.Spec.Reference.Export.Path, Export: b.Spec.Reference.Export.Name}] = b
	}
	types, err := render("types.yaml", v)
	require.NoError(t, err)
	var organization tenancyv1alpha1.WorkspaceType
	require.NoError(t, yaml.Unmarshal(types[0], &organization))
	require.Equal(t, tenancy.TypeOrganization, organization.Name)
	require.Len(t, bound, len(organization.Spec.DefaultAPIBindings))
	for _, ref := range organization.Spec.DefaultAPIBindings {
		require.Contains(t, bound, ref)
	}
	exports, err := render("exports.yaml", v)
	require.NoError(t, err)
	var export apisv1alpha2.APIExport
	require.NoError(t, yaml.Unmarshal(exports[0], &export))
	require.Equal(t, tenancy.ExportTenancy, export.Name)
	var claims []apisv1alpha2.PermissionClaim
	for _, c := range bound[tenancyv1alpha1.APIExportReference{Path: tree.Providers(), Export: tenancy.ExportTenancy}].Spec.PermissionClaims {
		require.Equal(t, apisv1alpha2.ClaimAccepted, c.State)
		require.True(t, c.Selector.MatchAll)
		claims = append(claims, c.PermissionClaim)
	}
	require.Equal(t, export.Spec.PermissionClaims, claims)
	require.Equal(t, "providers-id", bindings[1].Status.APIExportClusterName)
}

package bootstrap

import (
	"io/fs"
	"testing"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/config"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
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

// A start does not apply what is as an earlier one applied it, and mends what is not.
func TestApplyDocument_writesOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	s := kcpfake.New(t)
	b := &bootstrapper{clients: s.Clients()}
	const cluster = "providers"
	first := []byte("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: reader}\n" +
		"rules:\n- {apiGroups: [''], resources: [pods], verbs: [get, list]}\n")
	second := []byte("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: reader}\n")
	role := func() *rbacv1.ClusterRole {
		r := &rbacv1.ClusterRole{}
		r.Name = "reader"
		require.True(t, s.Read(cluster, r))
		return r
	}
	for _, step := range []struct {
		name     string
		document []byte
		before   func(r *rbacv1.ClusterRole)
		writes   int
	}{
		{"there is none", first, nil, 1},
		{"the next start", first, nil, 0},
		{"somebody added what the hub does not set", first, func(r *rbacv1.ClusterRole) { r.Labels = map[string]string{"a": "b"} }, 0},
		{"somebody took a verb away", first, func(r *rbacv1.ClusterRole) { r.Rules[0].Verbs = []string{"get"} }, 1},
		{"somebody added a rule", first, func(r *rbacv1.ClusterRole) { r.Rules = append(r.Rules, r.Rules[0]) }, 1},
		{"another version names fewer fields", second, nil, 1},
		{"the next start of that", second, nil, 0},
		{"back again", first, nil, 1},
	} {
		if step.before != nil {
			r := role()
			step.before(r)
			s.Put(cluster, r)
		}
		before := len(s.Writes())
		require.NoError(t, b.applyDocument(t.Context(), cluster, step.document), step.name)
		require.Len(t, s.Writes(), before+step.writes, step.name)
	}
	require.Len(t, role().Rules, 1)
	require.Equal(t, []string{"get", "list"}, role().Rules[0].Verbs)
}

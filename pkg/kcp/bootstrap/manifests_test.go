package bootstrap

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/config"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestEveryManifestRenders(t *testing.T) {
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

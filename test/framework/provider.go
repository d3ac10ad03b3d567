package framework

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// exampleProvider is the path of the provider in the manifests of the example.
const exampleProvider = "root:kedge:providers:widgets"

// ExampleCatalog returns a manifest of config/example-catalog. path is the workspace of the
// provider, in place of that of the example.
func ExampleCatalog(t testing.TB, name, path string) string {
	t.Helper()
	_, file, _, ok := runtime.Caller(0)
	require.True(t, ok)
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(file), "..", "..", "config", "example-catalog", name))
	require.NoError(t, err)
	return strings.ReplaceAll(string(raw), exampleProvider, path)
}

// Provider makes the provider of config/example-catalog in a workspace at path, whose parent
// exists, and returns its export. The hub of the path must have started. Nobody but kcp's admin
// may bind the export.
func Provider(t testing.TB, k *KCP, path string) v1alpha1.APIExportRef {
	t.Helper()
	cut := strings.LastIndexByte(path, ':')
	k.Applies(t, path[:cut], strings.Replace(ExampleCatalog(t, "workspace.yaml", path), "name: widgets", "name: "+path[cut+1:], 1))
	k.Applies(t, path, ExampleCatalog(t, "provider.yaml", path))
	return v1alpha1.APIExportRef{Path: path, Name: "widgets.example.org"}
}

// AllowBind lets people bind an export, as a provider does by hand.
func AllowBind(t testing.TB, k *KCP, export v1alpha1.APIExportRef, people ...string) {
	t.Helper()
	manifest := fmt.Sprintf(`apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: bind}
rules:
- {apiGroups: [apis.kcp.io], resources: [apiexports], resourceNames: [%s], verbs: [bind]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: bind}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: bind}
subjects:
`, export.Name)
	for _, name := range people {
		manifest += fmt.Sprintf("- {apiGroup: rbac.authorization.k8s.io, kind: User, name: %q}\n", name)
	}
	k.Applies(t, export.Path, manifest)
}

// Applies applies a manifest as kcp's admin. A new workspace serves an API a moment late.
func (k *KCP) Applies(t testing.TB, cluster, manifest string) {
	t.Helper()
	Eventually(t, Long, func() error {
		_, errOut, err := k.Kubectl(t, manifest, cluster, "apply", "-f", "-")
		if err != nil {
			err = errors.New(errOut)
		}
		return err
	})
}

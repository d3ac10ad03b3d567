package framework

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
)

// exampleProvider is the path of the provider in the manifests of the example.
const exampleProvider = "root:kedge:providers:widgets"

// ExampleCatalog returns a manifest of config/example-catalog. path is the workspace of the
// provider, in place of that of the example.
func ExampleCatalog(t testing.TB, name, path string) string {
	t.Helper()
	raw, err := example(name)
	require.NoError(t, err)
	return strings.ReplaceAll(string(raw), exampleProvider, path)
}

// example reads a file of the repository, in which tests and the bench run: a binary that was built with -trimpath does
// not know where its source is.
func example(name string) ([]byte, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for ; ; dir = filepath.Dir(dir) {
		raw, err := os.ReadFile(filepath.Join(dir, "config", "example-catalog", name))
		if !errors.Is(err, os.ErrNotExist) || dir == filepath.Dir(dir) {
			return raw, err
		}
	}
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

// ApplyProvider makes the API of config/example-catalog in a workspace, as kcp's admin, in one
// request for each object.
func ApplyProvider(ctx context.Context, clients *kcp.Clients, cluster string) error {
	raw, err := example("provider.yaml")
	if err != nil {
		return err
	}
	objects := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), len(raw))
	for {
		o := &unstructured.Unstructured{}
		if err := objects.Decode(o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := Wait(Long, func() error {
			_, err := clients.Apply(ctx, cluster, o)
			return err
		}); err != nil {
			return err
		}
	}
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

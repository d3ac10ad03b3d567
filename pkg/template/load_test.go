package template_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/template"
)

const (
	binding = `apiVersion: apis.kcp.io/v1alpha2
kind: APIBinding
metadata: {name: widgets}
spec:
  reference: {export: {path: "root:widgets", name: widgets.example.com}}
  permissionClaims:
  - {group: "", resource: configmaps, verbs: [get], state: Accepted, selector: {matchAll: true}}
`
	settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}\n"
)

// directory writes the files into a new directory and returns it.
func directory(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return dir
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	objects, err := template.Load(dir)
	require.NoError(t, err)
	for _, o := range objects {
		names = append(names, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
	}
	return names
}

func TestLoad_readsEveryManifestInOrder(t *testing.T) {
	t.Parallel()
	dir := directory(t, map[string]string{
		"2.yml":      "---\n# a comment\n---\n" + settings + "--- # and another\n" + "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: other}\n",
		"1.yaml":     binding + "---\n",
		"3.json":     `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"empty"},"type":"Opaque"}`,
		"README.md":  "not: [a manifest",
		".hidden":    "not: [a manifest",
		"..data/x.y": "",
	})
	require.Equal(t, []string{"APIBinding /widgets", "ConfigMap /settings", "ConfigMap other/settings", "Secret /empty"}, names(t, dir))
}

// A mounted ConfigMap has symbolic links into a directory that its next version replaces.
func TestLoad_readsAMountedConfigMap(t *testing.T) {
	t.Parallel()
	dir := directory(t, map[string]string{"..v1/settings.yaml": settings})
	require.NoError(t, os.Symlink("..v1", filepath.Join(dir, "..data")))
	require.NoError(t, os.Symlink("..data/settings.yaml", filepath.Join(dir, "settings.yaml")))
	require.Equal(t, []string{"ConfigMap /settings"}, names(t, dir))
}

func TestLoad_acceptsTheExample(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"APIBinding /widgets.example.com", "Widget default/hello"},
		names(t, filepath.Join("..", "..", "config", "example-template", "workspace")))
}

// claim returns an APIBinding with the permission claims in fields.
func claim(fields string) string {
	return `apiVersion: apis.kcp.io/v1alpha2
kind: APIBinding
metadata: {name: w}
spec: {reference: {export: {path: "root:w", name: w}}, permissionClaims: [` + fields + `]}`
}

func TestLoad_refuses(t *testing.T) {
	t.Parallel()
	const hubLabel = "tenancy.kedge.faros.sh/managed-by"
	named := func(api, kind, name, rest string) string {
		return "apiVersion: " + api + "\nkind: " + kind + "\nmetadata: {name: \"" + name + "\"}\n" + rest
	}
	bound := func(name, export string) string {
		return named("apis.kcp.io/v1alpha2", "APIBinding", name, `spec: {reference: {export: {path: root, name: `+export+`}}}`)
	}
	for name, c := range map[string]struct{ bad, says, good string }{
		"what is no YAML":                  {"a: [b", "x.yaml, document 2: ", ""},
		"a key twice":                      {settings + "data: {c: d}", "x.yaml, document 2: ", settings},
		"text":                             {"hello", "x.yaml, document 2: it is not an object", ""},
		"no apiVersion":                    {"kind: ConfigMap\nmetadata: {name: a}", "apiVersion is missing", ""},
		"a bad apiVersion":                 {named("a/b/c", "X", "a", ""), `apiVersion "a/b/c"`, named("a/b", "X", "a", "")},
		"no kind":                          {"apiVersion: v1\nmetadata: {name: a}", "kind is missing", ""},
		"no name":                          {"apiVersion: v1\nkind: ConfigMap", "metadata.name is missing", ""},
		"metadata that is none":            {"apiVersion: v1\nkind: ConfigMap\nmetadata: [a]", "metadata is not an object", ""},
		"a generated name":                 {"apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a}", "generateName", ""},
		"a list":                           {"apiVersion: v1\nkind: List\nitems: [{a: b}]", "it is a list", ""},
		"what was dumped from a kcp":       {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, resourceVersion: '1'}", "metadata.resourceVersion", ""},
		"the same object twice":            {settings + "---\n" + settings, "x.yaml, document 3: duplicate of ConfigMap settings in x.yaml, document 2", ""},
		"the same, with its namespace":     {settings + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: default}", "duplicate of ConfigMap settings", ""},
		"a Workspace":                      {named("tenancy.kcp.io/v1alpha1", "Workspace", "a", ""), "objects of the group tenancy.kcp.io", ""},
		"a Membership":                     {named("tenancy.kedge.faros.sh/v1alpha1", "Membership", "a", ""), "objects of the group tenancy.kedge.faros.sh", ""},
		"the LogicalCluster":               {named("core.kcp.io/v1alpha1", "LogicalCluster", "cluster", ""), "objects of the group core.kcp.io", ""},
		"a CRD of the hub's":               {named("apiextensions.k8s.io/v1", "CustomResourceDefinition", "a", "spec: {group: tenancy.kedge.faros.sh}"), "spec.group", named("apiextensions.k8s.io/v1", "CustomResourceDefinition", "a", "spec: {group: example.com}")},
		"a schema of kcp's tenancy":        {named("apis.kcp.io/v1alpha1", "APIResourceSchema", "a", "spec: {group: tenancy.kcp.io}"), "spec.group", named("apis.kcp.io/v1alpha1", "APIResourceSchema", "a", "spec: {group: example.com}")},
		"the default namespace":            {named("v1", "Namespace", "default", ""), "the hub creates it", named("v1", "Namespace", "other", "")},
		"a ClusterRole of the hub's":       {named("rbac.authorization.k8s.io/v1", "ClusterRole", "kedge:workspace:admin", ""), "begin with kedge:", named("rbac.authorization.k8s.io/v1", "ClusterRole", "reader", "")},
		"a binding of the hub":             {named("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "kedge:workspace:admin:user:mallory", ""), "begin with kedge:", ""},
		"the hub's label":                  {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {" + hubLabel + ": kedge-hub}}", hubLabel, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {example.com/managed-by: me}}"},
		"the hub's annotation":             {"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a, annotations: {tenancy.kedge.faros.sh/role: admin}}", "tenancy.kedge.faros.sh/role", ""},
		"a Secret that all can read":       {named("v1", "Secret", "a", "data: {a: Yg==}"), "every Workspace would contain", named("v1", "Secret", "a", "type: Opaque")},
		"a Secret in plain text":           {named("v1", "Secret", "a", "stringData: {a: b}"), "every Workspace would contain", ""},
		"an old binding":                   {named("apis.kcp.io/v1alpha1", "APIBinding", "a", "spec: {reference: {export: {name: a}}}"), "use apiVersion apis.kcp.io/v1alpha2", ""},
		"a binding of kcp's tenancy":       {bound("a", "tenancy.kcp.io"), "the export tenancy.kcp.io", bound("a", "b")},
		"a binding of the hub's tenancy":   {bound("a", "tenancy.kedge.faros.sh"), "the export tenancy.kedge.faros.sh", ""},
		"the binding that the hub watches": {bound("a", "access.kedge.faros.sh"), "the export access.kedge.faros.sh", ""},
		"its name":                         {bound("access.kedge.faros.sh", "a"), "a binding of the hub", ""},
		"an export twice":                  {bound("a", "a") + "\n---\n" + bound("b", "a"), "x.yaml, document 3: APIBinding b: the export a is already bound in x.yaml, document 2", bound("a", "a") + "\n---\n" + bound("b", "b")},
		"a binding of nothing":             {named("apis.kcp.io/v1alpha2", "APIBinding", "a", "spec: {reference: {}}"), "spec.reference.export", ""},
		"a misspelt field of a binding":    {named("apis.kcp.io/v1alpha2", "APIBinding", "a", "spec: {reference: {export: {name: a}}, permissionClaim: []}"), "permissionClaim", ""},
		"a claim on Workspaces":            {claim(`{group: tenancy.kcp.io, resource: workspaces, verbs: [get], state: Accepted, selector: {matchAll: true}}`), "tenancy.kcp.io is hidden from providers", claim(`{group: x.io, resource: workspaces, verbs: [get], state: Accepted, selector: {matchAll: true}}`)},
		"a claim on Memberships":           {claim(`{group: tenancy.kedge.faros.sh, resource: memberships, verbs: [get], state: Accepted, selector: {matchAll: true}}`), "tenancy.kedge.faros.sh is hidden from providers", ""},
		"a claim without a state":          {claim(`{group: "", resource: secrets, verbs: [get], selector: {matchAll: true}}`), "spec.permissionClaims[0]: state", ""},
		"a claim without verbs":            {claim(`{group: "", resource: secrets, state: Accepted, selector: {matchAll: true}}`), "verbs are required", ""},
		"a claim on nobody knows what":     {claim(`{group: "", resource: secrets, verbs: [get], state: Accepted, selector: {}}`), "selector", ""},
		"a claim twice":                    {claim(`{group: "", resource: secrets, verbs: [get], state: Accepted, selector: {matchAll: true}}, {group: "", resource: secrets, verbs: [list], state: Rejected, selector: {matchAll: true}}`), "claimed twice", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const first = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first}\n---\n"
			dir := directory(t, map[string]string{"x.yaml": first + c.bad})
			_, err := template.Load(dir)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, dir)
			require.ErrorContains(t, err, "x.yaml, document ")
			_, err = template.Load(directory(t, map[string]string{"x.yaml": first + c.good}))
			require.NoError(t, err, "the positive control")
		})
	}
}

func TestLoad_refusesADirectoryWithoutManifests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		dir  string
		says string
	}{
		"none":        {filepath.Join(t.TempDir(), "missing"), "missing"},
		"a file":      {filepath.Join(directory(t, map[string]string{"a.yaml": settings}), "a.yaml"), "a.yaml"},
		"empty":       {t.TempDir(), "it contains no manifest"},
		"no manifest": {directory(t, map[string]string{"README.md": "hello"}), "it contains no manifest"},
		"a subfolder": {directory(t, map[string]string{"a.yaml": settings, "more/b.yaml": settings}), "more is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := template.Load(c.dir)
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestLoad_reportsAllProblems(t *testing.T) {
	t.Parallel()
	_, err := template.Load(directory(t, map[string]string{"a.yaml": "kind: X", "b.yaml": "apiVersion: v1"}))
	require.ErrorContains(t, err, "a.yaml, document 1: apiVersion is missing")
	require.ErrorContains(t, err, "b.yaml, document 1: kind is missing")
}

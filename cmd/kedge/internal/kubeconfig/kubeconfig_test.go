package kubeconfig_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/kubeconfig"
)

const (
	first  = "9acbf567-a188-4c75-9c40-3c3bec1a775f"
	second = "50760342-89c9-4163-90c9-a5809b1cfe3b"
	// twin begins as first does.
	twin = "9acbf567-0000-4c75-9c40-3c3bec1a775f"
)

func entry(t *testing.T, org, workspace, uuid, profile string) *kubeconfig.Entry {
	t.Helper()
	e, err := kubeconfig.New(kubeconfig.Source{
		Org: org, Workspace: workspace, UUID: uuid, Server: "https://hub", Profile: profile,
		Kubeconfig: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"x",
			"clusters":[{"name":"x","cluster":{"server":"https://hub/clusters/%s","certificate-authority-data":"UEVN"}}],
			"contexts":[{"name":"x","context":{"cluster":"x","user":"x","namespace":"default"}}],
			"users":[{"name":"x","user":{"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"kedge","args":["credential"],
				"env":null,"provideClusterInfo":true,"interactiveMode":"Never"}}}]}`, uuid),
	})
	require.NoError(t, err)
	return e
}

func TestEntry_isNamedByItsDisplayNamesMadeSafe(t *testing.T) {
	t.Parallel()
	for in, want := range map[[2]string]string{
		{"ACME", "dev"}:                       "ACME/dev",
		{"My organization", "My  workspace!"}: "My-organization/My-workspace",
		{"$(rm -rf ~)", "a/b\\c'\"`"}:         "rm-rf/a-b-c",
		{"../..", "-x"}:                       "unnamed/x",
		{"Бюро", "東京 1.2_3"}:                  "Бюро/東京-1.2_3",
		{"हिन्दी", "e\u0301t"}:                "हिन्दी/e\u0301t",
		{"a\x00\n\u202eb", ""}:                "a-b/unnamed",
		{strings.Repeat("é", 100), "x"}:       strings.Repeat("é", 63) + "/x",
	} {
		require.Equal(t, want, entry(t, in[0], in[1], first, "p").Name)
	}
}

func TestDistinguish_addsThePartOfTheUUIDThatDiffers(t *testing.T) {
	t.Parallel()
	entries := []*kubeconfig.Entry{
		entry(t, "A", "x", first, "p"), entry(t, "A", "x", second, "p"), entry(t, "A", "y", second, "p"),
		entry(t, "B", "x", first, "p"), entry(t, "B", "x", twin, "p"),
	}
	kubeconfig.Distinguish(entries)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	require.Equal(t, []string{"A/x-9acbf567", "A/x-50760342", "A/y", "B/x-9acbf567-" + first, "B/x-9acbf567-" + twin}, names)
}

func TestNew_refusesWhatIsNotAKubeconfigOfAHub(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"", "kind: Config", "<html>", `{"clusters":[{}],"contexts":[{}],"users":[{"user":{"token":"t"}}]}`} {
		_, err := kubeconfig.New(kubeconfig.Source{UUID: first, Kubeconfig: []byte(raw)})
		require.Error(t, err, raw)
	}
}

const others = `# mine
apiVersion: v1
kind: Config
preferences:
  colors: true
my-field: [1, 2]
current-context: prod
clusters:
- name: prod   # careful
  cluster:
    server: https://prod
    my-cluster-field: {a: b}
- name: A/taken
  cluster:
    server: https://elsewhere
contexts:
- name: prod
  context:
    cluster: prod
    user: prod
    extensions:
    - name: minikube.sigs.k8s.io
      extension:
        last-update: today
- name: A/taken
  context: {cluster: A/taken, user: prod}
users:
- name: prod
  user:
    token: "0123"
`

func merge(t *testing.T, path, use string, entries ...*kubeconfig.Entry) *clientcmdapi.Config {
	t.Helper()
	require.NoError(t, kubeconfig.Merge(t.Context(), path, entries, use))
	c, err := clientcmd.LoadFromFile(path)
	require.NoError(t, err)
	return c
}

func TestMerge_leavesEverythingOfOthersAsItIs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path, []byte(others), 0o600))
	before, err := clientcmd.LoadFromFile(path)
	require.NoError(t, err)
	c := merge(t, path, "", entry(t, "A", "x", first, "p"), entry(t, "A", "taken", second, "p"))
	require.Equal(t, "prod", c.CurrentContext)
	for name, cluster := range before.Clusters {
		require.Equal(t, cluster, c.Clusters[name])
	}
	for name, one := range before.Contexts {
		require.Equal(t, one, c.Contexts[name])
	}
	require.Equal(t, before.AuthInfos["prod"], c.AuthInfos["prod"])
	require.Equal(t, "https://hub/clusters/"+second, c.Clusters["A/taken-50760342"].Server)
	require.Len(t, c.Contexts, 4)
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, line := range []string{"# mine\n", "my-field: [1, 2]\n", "- name: prod # careful\n", "    my-cluster-field: {a: b}\n", "    token: \"0123\"\n"} {
		require.Contains(t, string(raw), line)
	}
	_, err = os.Stat(path + ".lock")
	require.ErrorIs(t, err, os.ErrNotExist)

	again := merge(t, path, "", entry(t, "A", "x", first, "p"), entry(t, "A", "taken", second, "p"))
	require.Equal(t, c, again, "a second merge replaces the entries")
}

func TestMerge_keepsTheEntriesOfAnotherLogin(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "config")
	c := merge(t, path, "", entry(t, "A", "x", first, "alice"))
	require.Empty(t, c.CurrentContext)
	c = merge(t, path, first, entry(t, "A", "x", first, "bob"))
	require.Equal(t, "A/x-9acbf567", c.CurrentContext)
	require.Equal(t, []string{"credential", "--server", "https://hub", "--profile", "alice"}, c.AuthInfos["A/x"].Exec.Args)
	require.Equal(t, []string{"credential", "--server", "https://hub", "--profile", "bob"}, c.AuthInfos["A/x-9acbf567"].Exec.Args)
	c = merge(t, path, first, entry(t, "A", "x", first, "carol"))
	require.Equal(t, "A/x-9acbf567@carol", c.CurrentContext)
	require.Len(t, c.Contexts, 3)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestMerge_keepsTheNamespaceThatThePersonChose(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config")
	merge(t, path, "", entry(t, "A", "x", first, "p"))
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(raw), "namespace: default", "namespace: mine", 1)), 0o600))
	c := merge(t, path, "", entry(t, "A", "x", first, "p"))
	require.Equal(t, "mine", c.Contexts["A/x"].Namespace)
	require.Len(t, c.Contexts, 1)
}

func TestMerge_writesIntoEmptyListsAndJSON(t *testing.T) {
	t.Parallel()
	for _, content := range []string{
		"", "\n", "apiVersion: v1\nkind: Config\nclusters: []\ncontexts: null\nusers:\n",
		`{"apiVersion":"v1","kind":"Config","clusters":[],"contexts":[],"users":[]}`,
	} {
		path := filepath.Join(t.TempDir(), "config")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		require.Contains(t, merge(t, path, "", entry(t, "A", "x", first, "p")).Contexts, "A/x")
	}
}

func TestMerge_changesNoFileThatItCannotUnderstand(t *testing.T) {
	t.Parallel()
	for _, content := range []string{
		"[]", "text", "{", "clusters: 7\n", "clusters:\n- 7\n", "a: b\n---\nc: d\n", "clusters: {a: b}\n", "\x00",
	} {
		path := filepath.Join(t.TempDir(), "config")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		err := kubeconfig.Merge(t.Context(), path, []*kubeconfig.Entry{entry(t, "A", "x", first, "p")}, "")
		require.ErrorContains(t, err, "nothing was changed", content)
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, content, string(raw))
	}
}

func TestMerge_waitsForKubectl(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path+".lock", nil, 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.Error(t, kubeconfig.Merge(ctx, path, nil, ""))
	require.NoFileExists(t, path)
	require.FileExists(t, path+".lock", "it is kubectl's")
	require.NoError(t, os.Remove(path+".lock"))
	merge(t, path, "")
}

func TestPath_isTheFirstFileOrTheUsualOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ variable, home, profile, want string }{
		{"", "/home/a", "", "/home/a/.kube/config"},
		{"", "", "/users/a", "/users/a/.kube/config"},
		{"", "/home/a", "/users/a", "/home/a/.kube/config"},
		{"/a:/b", "/home/a", "/users/a", "/a"},
		{":/b", "/home/a", "", "/b"},
	} {
		env := map[string]string{"KUBECONFIG": c.variable, "HOME": c.home, "USERPROFILE": c.profile}
		path, err := kubeconfig.Path(func(name string) string { return env[name] })
		require.NoError(t, err)
		require.Equal(t, c.want, path)
	}
	_, err := kubeconfig.Path(func(string) string { return "" })
	require.Error(t, err)
}

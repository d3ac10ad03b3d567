package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// offer has the person of the computer offer an API in one Workspace, and enable it in another one, which is current
// afterwards.
func (x *tenants) offer(t *testing.T) {
	t.Helper()
	catalog, err := filepath.Abs("../../config/example-catalog")
	require.NoError(t, err)
	x.works(t, "apply", "-f", filepath.Join(catalog, "provider.yaml"))
	x.computer.kedge(t, "catalog", "publish", "-f", filepath.Join(catalog, "entry.yaml"), "--export-workspace", "work")
	x.shop = x.enable(t, "shop")
	x.widget(t, x.shop, "embedded")
}

// enable makes a Workspace in which the API is enabled, and returns its kubeconfig.
func (x *tenants) enable(t *testing.T, name string) (kubeconfig string) {
	t.Helper()
	kubeconfig = filepath.Join(x.computer.home, name+".kubeconfig")
	x.computer.kedge(t, "workspaces", "create", name)
	x.computer.kedge(t, "kubeconfig", "--file", kubeconfig)
	x.computer.kedge(t, "providers", "enable", "widgets", "--accept-claim", "configmaps", "--reject-claim", "secrets")
	return kubeconfig
}

// widget makes an object of the API, and waits until kcp serves that.
func (x *tenants) widget(t *testing.T, kubeconfig, name string) {
	t.Helper()
	file := filepath.Join(x.computer.home, name+".json")
	object := `{"apiVersion":"widgets.example.org/v1","kind":"Widget","metadata":{"name":"` + name + `"},"spec":{"color":"red"}}`
	require.NoError(t, os.WriteFile(file, []byte(object), 0o600))
	framework.Eventually(t, framework.Long, func() error {
		out, err := x.computer.kubectl(t, "--kubeconfig", kubeconfig, "apply", "-f", file)
		return framework.Check(err == nil, "%s", out)
	})
}

// gainsAShard makes the kcp of its own the root shard of two, as deploy/README.md says. Its etcd runs.
func (p *promotion) gainsAShard(t *testing.T, hub string, x *tenants, before map[string]string) {
	t.Helper()
	for _, command := range p.typed(t, "promote: root shard") {
		out, err := p.run(t, command)
		require.NoError(t, err, "%s: %s", command, out)
	}
	const two = "two"
	kcp, err := framework.GrowKCP(t.TempDir(), framework.Grown{
		TokenFile: p.tokens,
		Start: func(flags ...string) (*framework.Process, error) {
			root := filepath.Join(filepath.Dir(p.file), "root.sh")
			return framework.StartProcess("sh", append([]string{"-c", p.shell + `. "$0"`, root}, flags...)...)
		},
		Flags: []string{"--authentication-config=" + filepath.Join(p.dir, "kcp", "authentication.json")},
	}, two)
	require.NoError(t, err)
	t.Cleanup(kcp.Stop)
	h := p.hub(t, hub+" --kcp-kubeconfig="+kcp.Kubeconfig)
	require.Equal(t, before, x.facts(t, h))
	x.widget(t, x.shop, "sharded")
	require.Equal(t, framework.RootShard, kcp.ShardOf(t, x.cluster))

	kcp.Schedule(t, two)
	// A Workspace of an Organization of before, of a person with a static token, with a bot of its own.
	ws := h.CreateWorkspace(t, "alice", x.scene.org, "Second")
	there := *x.scene
	there.ws, there.key = ws.Text("uuid"), "second"
	cluster := ws.Text("clusterID")
	require.Equal(t, two, kcp.ShardOf(t, cluster))
	there.bot = h.Do(t, createBot(&there), http.StatusCreated, http.StatusAccepted).Text("uuid")
	there.secret = h.Do(t, onBot(http.MethodPost, "/tokens", map[string]any{})(&there), http.StatusCreated).Text("token")
	(&tenants{scene: &there, cluster: cluster}).botWorks(t, h)
	x.botWorks(t, h)
	// One of a person with a session, in which the API of the first shard is enabled.
	x.widget(t, x.enable(t, "second"), "second")
	x.widget(t, x.shop, "last")
	// An Organization, with its first Workspace.
	org := h.CreateOrg(t, "alice", "Third")
	require.Equal(t, two, kcp.ShardOf(t, h.CreateWorkspace(t, "alice", org, "Third").Text("clusterID")))

	framework.Eventually(t, framework.Long, func() error {
		out, err := p.run(t, "kedge-hub verify --config "+quoted(p.file)+" --kcp-kubeconfig "+kcp.Kubeconfig)
		return framework.Check(err == nil, "%v: %s", err, out)
	})
	require.NoError(t, h.Stop(), "%s", h.Output)
}

package e2e

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/test/framework"
	"github.com/faroshq/kedge-hub/test/readme"
)

// promotion is a hub that moves from its embedded kcp to an external one, as deploy/README.md says.
type promotion struct {
	dex *framework.Dex
	// dir is the data folder, file the configuration, and tokens the file of static tokens.
	dir, file, tokens string
	port              int
	metrics           string
	// shell is how a shell finds the programs.
	shell string
}

func newPromotion(t *testing.T) *promotion {
	t.Helper()
	dex, err := framework.StartDex(t.TempDir(), framework.DexOptions{})
	require.NoError(t, err)
	t.Cleanup(dex.Kill)
	bin, err := filepath.Abs(os.Getenv("KEDGE_TEST_BIN"))
	require.NoError(t, err)
	work := t.TempDir()
	p := &promotion{
		dex: dex, dir: filepath.Join(work, "a hub's data"), file: filepath.Join(work, "hub.yaml"), port: dex.HubPort(t),
		shell: "PATH='" + bin + "':$PATH; ",
	}
	p.tokens = filepath.Join(work, "tokens.csv")
	require.NoError(t, framework.WriteTokens(p.tokens))
	p.metrics = fmt.Sprintf("127.0.0.1:%d", freePort(t))
	raw, err := yaml.Marshal(map[string]any{
		"apiVersion": "config.kedge.faros.sh/v1alpha1", "kind": "HubConfiguration",
		"data-dir": p.dir, "token-file": p.tokens,
		"listen-address": fmt.Sprintf("127.0.0.1:%d", p.port), "metrics-listen-address": p.metrics,
		"kcp-port": freePort(t), "etcd-client-port": freePort(t), "etcd-peer-port": freePort(t),
		"spare-organizations": 0, "spare-workspaces": 0, "create-timeout": "1m",
		"oidc-issuer-url": dex.Issuer, "oidc-ca-file": dex.CAFile,
		"oidc-client-id": framework.HubClient, "oidc-client-secret-file": dex.SecretFile,
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(p.file, raw, 0o600))
	return p
}

// typed are the commands of a block of deploy/README.md, with the files of the test.
func (p *promotion) typed(t *testing.T, name string) (commands []string) {
	t.Helper()
	at := strings.NewReplacer("/etc/kedge-hub/hub.yaml", quoted(p.file), "/var/lib/kedge", quoted(p.dir),
		"/mnt/backups", quoted(t.TempDir()))
	for line := range strings.Lines(readme.BlockOf(t, "deploy/README.md", name)) {
		command, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "$ ")
		require.True(t, ok, "%s is no command", line)
		commands = append(commands, at.Replace(command))
	}
	return commands
}

func quoted(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }

// run runs a command line.
func (p *promotion) run(t *testing.T, command string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", p.shell+command)
	cmd.Dir, cmd.WaitDelay = filepath.Dir(p.file), 10*time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// start starts a command line that goes on.
func (p *promotion) start(t *testing.T, command string) *framework.Process {
	t.Helper()
	process, err := framework.StartProcess("sh", "-c", p.shell+"exec "+command)
	require.NoError(t, err)
	t.Cleanup(process.Kill)
	return process
}

// hub starts a hub, and waits until it is ready.
func (p *promotion) hub(t *testing.T, command string) *hub {
	t.Helper()
	h := &hub{Process: p.start(t, command), dir: p.dir, port: p.port, metrics: "http://" + p.metrics + "/metrics"}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the hub says: %s", last(h.Process))
		}
	})
	h.awaitReady(t)
	return h
}

// commandLines are those of a script with comments.
func commandLines(script string) (lines []string) {
	for paragraph := range strings.SplitSeq(script, "\n\n") {
		var command []string
		for line := range strings.SplitSeq(strings.TrimSpace(paragraph), "\n") {
			if !strings.HasPrefix(line, "#") {
				command = append(command, line)
			}
		}
		if len(command) > 0 {
			lines = append(lines, strings.Join(command, "\n"))
		}
	}
	return lines
}

// tenants are the people and programs that use a hub while its kcp is another one.
type tenants struct {
	// computer has a session of Dex's alice, and alice is a person with a static token.
	computer *computer
	// scene has alice's Organization, in which bob is an admin, her Workspace, and a bot with a token there.
	scene   *scene
	cluster string
	// session is one of Dex's carol.
	session framework.Tokens
	// shop is the kubeconfig of a Workspace in which a provider is enabled.
	shop string
}

func newTenants(t *testing.T, h *hub, dex *framework.Dex) *tenants {
	t.Helper()
	c := newComputer(t, &secrets{all: map[string]bool{}})
	c.login(t, h, dex, "alice")
	c.kedge(t, "orgs", "create", "ACME")
	c.kedge(t, "workspaces", "create", "work")
	c.kedge(t, "kubeconfig", "--file", filepath.Join(c.home, "kubeconfig"))
	x := &tenants{computer: c, scene: &scene{a: "alice", b: "bob", org: h.CreateOrg(t, "alice", "Static"), key: "bot"}}
	x.works(t, "create", "configmap", "embedded")
	ws := h.CreateWorkspace(t, "alice", x.scene.org, "Own")
	x.scene.ws, x.cluster = ws.Text("uuid"), ws.Text("clusterID")
	h.Do(t, framework.Call{As: "bob", Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK)
	h.Do(t, addTo(inOrg, "admin", false)(x.scene), http.StatusCreated)
	h.Enters(t, "bob", x.cluster)
	x.scene.bot = h.Do(t, createBot(x.scene), http.StatusCreated, http.StatusAccepted).Text("uuid")
	x.scene.secret = h.Do(t, onBot(http.MethodPost, "/tokens", map[string]any{})(x.scene), http.StatusCreated).Text("token")
	x.botWorks(t, h)
	x.session = dex.LogInAt(t, h.Client, "carol")
	x.offer(t)
	return x
}

// works runs kubectl with the kubeconfig of the computer.
func (x *tenants) works(t *testing.T, args ...string) string {
	t.Helper()
	out, err := x.computer.kubectl(t, args...)
	require.NoError(t, err, out)
	return out
}

// botWorks waits until the bot is let in.
func (x *tenants) botWorks(t *testing.T, h *hub) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		code, err := enters(h, x.scene.secret, x.cluster)
		return framework.Check(err == nil && code == http.StatusOK, "the bot gets %d: %v", code, err)
	})
}

// facts is what must not change: people, sessions, UUIDs and cluster IDs.
func (x *tenants) facts(t *testing.T, h *hub) map[string]string {
	t.Helper()
	facts := map[string]string{}
	for _, c := range []framework.Call{
		{As: "alice", Method: http.MethodGet, Path: "/api/users/me"}, inOrg(x.scene, http.MethodGet, "", nil),
		inWorkspace(x.scene, http.MethodGet, "", nil), inWorkspace(x.scene, http.MethodGet, "/serviceaccounts", nil),
	} {
		facts[c.Path] = identity(t, h.Do(t, c, http.StatusOK).Raw)
	}
	for _, command := range []string{"orgs list -o json", "workspaces list -o json", "sessions list -o json", "providers list -o json"} {
		facts[command] = identity(t, []byte(x.computer.kedge(t, strings.Fields(command)...)))
	}
	x.botWorks(t, h)
	x.session = framework.TokensOf(t, h.Refresh(t, x.session.Secret))
	carol := framework.Call{Token: x.session.Access, Method: http.MethodGet, Path: "/api/users/me"}
	facts["carol"] = identity(t, h.Do(t, carol, http.StatusOK).Raw)
	h.Enters(t, "alice", x.cluster)
	require.Contains(t, x.works(t, "get", "configmaps", "-o", "name"), "configmap/embedded")
	return facts
}

// identity is the part of an answer that depends neither on measurements nor on times.
func identity(t *testing.T, raw []byte) string {
	t.Helper()
	stable := []string{"uuid", "id", "name", "displayName", "role", "workspacePath", "clusterID", "url", "createdAt", "createdBy"}
	var found []string
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, value := range v {
				walk(path+"."+key, value)
			}
		case []any:
			for i, value := range v {
				walk(fmt.Sprint(path, "[", i, "]"), value)
			}
		default:
			key := path[strings.LastIndexByte(path, '.')+1:]
			if slices.Contains(stable, key) {
				found = append(found, fmt.Sprint(path, "=", v))
			}
		}
	}
	var answer any
	require.NoError(t, json.Unmarshal(raw, &answer))
	walk("", answer)
	slices.Sort(found)
	require.NotEmpty(t, found, "%s", raw)
	return strings.Join(found, "\n")
}

// etcd starts an etcd, and waits until it serves.
func (p *promotion) etcd(t *testing.T, command string) *framework.Process {
	t.Helper()
	etcd := p.start(t, command)
	framework.Eventually(t, framework.Long, func() error {
		return framework.Check(strings.Contains(etcd.Output.String(), "ready to serve client requests"), "%s", last(etcd))
	})
	return etcd
}

// TestPromote_servesTheSameDataGoesBackAndGainsAShard types what deploy/README.md says: an etcd and a kcp of their own
// serve the data of a hub with an embedded kcp, later the embedded kcp serves it again, and then a kcp of two shards.
func TestPromote_servesTheSameDataGoesBackAndGainsAShard(t *testing.T) {
	t.Parallel()
	sameModules(t)
	p := newPromotion(t)
	embedded := "kedge-hub --config " + quoted(p.file)
	h := p.hub(t, embedded)
	x := newTenants(t, h, p.dex)
	before := x.facts(t, h)
	verified(t, p.dir)

	for _, command := range p.typed(t, "promote: save") {
		out, err := p.run(t, command)
		require.NoError(t, err, "%s: %s", command, out)
	}
	printing := p.typed(t, "promote: print")
	require.Len(t, printing, 1)
	out, err := p.run(t, printing[0])
	require.Error(t, err)
	require.Contains(t, out, "--data-dir: a hub works with ")
	require.NoError(t, h.Stop(), "%s", h.Output)

	out, err = p.run(t, printing[0])
	require.NoError(t, err, out)
	script, err := os.ReadFile(filepath.Join(filepath.Dir(p.file), "promote.sh"))
	require.NoError(t, err)
	require.Contains(t, string(script), "--authentication-config=")
	lines := commandLines(string(script))
	require.Len(t, lines, 4, "%s", script)
	etcd := p.etcd(t, lines[0])
	kcp := p.start(t, lines[1])
	framework.Eventually(t, framework.Long, func() error {
		out, err := p.run(t, lines[2])
		return framework.Check(err == nil, "%s\n%s\n%s", out, last(etcd), last(kcp))
	})
	out, err = p.run(t, printing[0])
	require.Error(t, err)
	require.Contains(t, out, "--data-dir: an etcd works with ")
	refused := p.start(t, embedded)
	select {
	case <-refused.Ended():
		require.Contains(t, refused.Output.String(), "--data-dir: an etcd works with ")
	case <-time.After(framework.Long):
		require.Fail(t, "a hub with an embedded kcp starts beside the etcd", "%s", refused.Output)
	}
	h = p.hub(t, lines[3])
	require.Contains(t, h.Output.String(), `"embeddedKCP": false`)
	require.Equal(t, before, x.facts(t, h))
	h.Enters(t, "bob", x.cluster)

	x.works(t, "create", "configmap", "external")
	x.widget(t, x.shop, "external")
	x.computer.kedge(t, "workspaces", "create", "later")
	made := h.CreateWorkspace(t, "alice", x.scene.org, "External")
	h.Do(t, remove(inOrg, "?cascade=true")(x.scene), http.StatusOK, http.StatusNoContent)
	gone := func(h *hub) {
		t.Helper()
		for _, c := range asBob(x.scene, x.cluster) {
			h.Do(t, c, http.StatusForbidden, http.StatusNotFound)
		}
	}
	gone(h)
	for _, command := range p.typed(t, "promote: verify") {
		framework.Eventually(t, framework.Long, func() error {
			out, err := p.run(t, command)
			return framework.Check(err == nil, "%s: %v: %s", command, err, out)
		})
	}
	external := x.facts(t, h)
	require.NoError(t, h.Stop(), "%s", h.Output)
	require.NoError(t, kcp.Stop(), "%s", last(kcp))
	// etcd ends by the signal when it has closed its files.
	require.EqualError(t, etcd.Stop(), "signal: terminated")
	require.Contains(t, last(etcd), "closed etcd server")

	h = p.hub(t, embedded)
	require.Contains(t, h.Output.String(), `"embeddedKCP": true`)
	require.Equal(t, external, x.facts(t, h))
	require.Contains(t, x.works(t, "get", "configmaps", "-o", "name"), "configmap/external")
	h.Enters(t, "alice", made.Text("clusterID"))
	gone(h)
	verified(t, p.dir)
	framework.Eventually(t, framework.Long, func() error {
		raw := string(h.Do(t, inOrg(x.scene, http.MethodGet, "/audit", nil), http.StatusOK).Raw)
		for _, action := range []string{"/serviceaccounts", "remove member"} {
			if !strings.Contains(raw, action) {
				return fmt.Errorf("the records lack %q: %s", action, raw)
			}
		}
		return nil
	})

	again := x.facts(t, h)
	require.NoError(t, h.Stop(), "%s", h.Output)
	out, err = p.run(t, printing[0])
	require.NoError(t, err, out)
	p.etcd(t, lines[0])
	p.gainsAShard(t, lines[3], x, again)
}

// verified waits until kedge-hub verify finds no difference.
func verified(t *testing.T, dir string) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		code, out := verifies(t, dir)
		return framework.Check(code == 0, "kedge-hub verify ends with %d: %s", code, out)
	})
}

// last is the end of what a program printed.
func last(p *framework.Process) string {
	out := p.Output.String()
	return out[max(len(out)-4096, 0):]
}

// sameModules requires that the etcd and the kcp of the test are those that the hub links.
func sameModules(t *testing.T) {
	t.Helper()
	modules := func(name string) map[string]string {
		program, err := framework.Bin(name)
		require.NoError(t, err)
		info, err := buildinfo.ReadFile(program)
		require.NoError(t, err)
		found := map[string]string{info.Main.Path: info.Main.Version}
		for _, m := range info.Deps {
			for m.Replace != nil {
				m = m.Replace
			}
			found[m.Path] = m.Version
		}
		return found
	}
	linked := modules("kedge-hub")
	for name, module := range map[string]string{"etcd": "go.etcd.io/etcd/server/v3", "kcp": "github.com/kcp-dev/kcp"} {
		own := modules(name)
		require.Contains(t, own, module)
		maps.DeleteFunc(own, func(module, version string) bool { return linked[module] == "" || linked[module] == version })
		require.Empty(t, own, "modules of %s have other versions than those of kedge-hub", name)
	}
}

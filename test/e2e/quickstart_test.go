package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
	"github.com/faroshq/kedge-hub/test/readme"
)

// transcript is a block of commands of the README, with their output.
type transcript struct {
	// url is that of the hub, for programs whose calls are compared with the OpenAPI document.
	url string
	// work is the directory in which the commands run.
	work string
	// environment is that of the commands. exports are lines that come before each of them.
	environment, exports []string
}

// The test runs the commands of the README's quick start, and those of its walk through the
// catalog, against a hub that is started as by make run, and compares their output with the README.
func TestREADME_quickStartWorks(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	data := filepath.Join(work, ".data")
	require.NoError(t, os.Mkdir(data, 0o700))
	x := &transcript{url: comparedHub(t, data, freePort(t)).URL, work: work}
	for _, name := range []string{"alice", "bob"} {
		require.NoError(t, os.WriteFile(filepath.Join(data, name+".token"), []byte(framework.Token(name)), 0o600))
	}
	for link, at := range map[string]string{"bin": os.Getenv("KEDGE_TEST_BIN"), "config": "../../config"} {
		target, err := filepath.Abs(at)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(target, filepath.Join(work, link)))
	}
	x.environment = append(os.Environ(), "HOME="+work, "KEDGE_CONFIG="+filepath.Join(work, "config.json"))
	x.typed(t, "quick start")
	x.typed(t, "catalog")
	x.sudo(t)
	x.asks(t)
}

// typed runs the block of a name and compares its output.
func (x *transcript) typed(t *testing.T, name string) {
	t.Helper()
	// Lines that begin with "$ " are commands, the others are their output. UUIDs, times,
	// ages and column widths can differ.
	var commands []string
	expected := map[string][]string{}
	for line := range strings.Lines(readme.Block(t, name)) {
		line = strings.TrimRight(line, "\n")
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			commands = append(commands, command)
		} else if line != "" {
			last := commands[len(commands)-1]
			expected[last] = append(expected[last], line)
		}
	}
	require.NotEmpty(t, commands)
	for _, command := range commands {
		typed := strings.ReplaceAll(command, "https://127.0.0.1:9443", x.url)
		if strings.HasPrefix(typed, "export ") {
			x.exports = append(x.exports, typed)
			continue
		}
		out, err := x.run(t, typed)
		require.NoError(t, err, "%s\n%s", typed, out)
		printed := normal(strings.ReplaceAll(out, x.url, "https://127.0.0.1:9443"))
		for _, line := range expected[command] {
			require.Contains(t, printed, normal(line), "%s", typed)
		}
	}
}

func (x *transcript) run(t *testing.T, command string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.Join(append(slices.Clone(x.exports), command), "\n"))
	cmd.Dir, cmd.Env, cmd.WaitDelay = x.work, x.environment, 10*time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// works runs a command that must succeed.
func (x *transcript) works(t *testing.T, command string) string {
	t.Helper()
	out, err := x.run(t, command)
	require.NoError(t, err, "%s\n%s", command, out)
	return out
}

// bobs comes before the commands of bob.
const bobs = "export KEDGE_CONFIG=$PWD/bob.json\n"

// asks has a member of the organization ask for rights in a workspace that he is not in.
func (x *transcript) asks(t *testing.T) {
	t.Helper()
	x.works(t, `kedge members add bob && kedge workspaces set-requests "My workspace" members`)
	x.works(t, bobs+`kedge requests create member --workspace "$(kedge requests workspaces -o name)" --reason "to help"`)
	require.Contains(t, x.works(t, "kedge requests"), "to help")
}

// sudo runs kubectl as a member with the rights of an admin for one command.
func (x *transcript) sudo(t *testing.T) {
	t.Helper()
	const read = "kubectl get clusterroles -o name"
	x.works(t, bobs+"kedge login --server "+x.url+" --ca-file .data/tls/ca.crt --token-file .data/bob.token")
	x.works(t, `kedge workspaces members add bob --sudo --workspace Shop`)
	x.works(t, bobs+`kedge orgs use "My organization" && kedge workspaces use Shop && kedge kubeconfig > bob.kubeconfig`)
	require.NotContains(t, x.works(t, bobs+"kubectl --kubeconfig bob.kubeconfig get namespaces -o name"), "clusterrole")
	out, err := x.run(t, bobs+"kubectl --kubeconfig bob.kubeconfig create clusterrole further --verb get --resource configmaps")
	require.Error(t, err, "bob is no admin: %s", out)
	x.works(t, bobs+"kedge sudo -- kubectl create clusterrole further --verb get --resource configmaps")
	require.Contains(t, x.works(t, bobs+"kedge sudo -- "+read), "clusterrole.rbac.authorization.k8s.io/further")
	x.works(t, `kedge workspaces members set-role bob member --sudo=false --workspace Shop`)
	out, err = x.run(t, bobs+"kedge sudo -- "+read)
	require.Error(t, err)
	require.Contains(t, out, "an admin of the workspace can give you sudo")
}

var varying = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|\b\d+m?\d*s\b`)

func normal(s string) string {
	return strings.Join(strings.Fields(varying.ReplaceAllString(s, "*")), " ")
}

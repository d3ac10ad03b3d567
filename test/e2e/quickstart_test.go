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

// sudo runs kubectl as a member with the rights of an admin for one command.
func (x *transcript) sudo(t *testing.T) {
	t.Helper()
	works := func(command string) string {
		out, err := x.run(t, command)
		require.NoError(t, err, "%s\n%s", command, out)
		return out
	}
	const asBob, read = "export KEDGE_CONFIG=$PWD/bob.json\n", "kubectl get clusterroles -o name"
	works(asBob + "kedge login --server " + x.url + " --ca-file .data/tls/ca.crt --token-file .data/bob.token")
	works(`kedge workspaces members add bob --sudo --workspace Shop`)
	works(asBob + `kedge orgs use "My organization" && kedge workspaces use Shop && kedge kubeconfig > bob.kubeconfig`)
	require.NotContains(t, works(asBob+"kubectl --kubeconfig bob.kubeconfig get namespaces -o name"), "clusterrole")
	out, err := x.run(t, asBob+"kubectl --kubeconfig bob.kubeconfig create clusterrole further --verb get --resource configmaps")
	require.Error(t, err, "bob is no admin: %s", out)
	works(asBob + "kedge sudo -- kubectl create clusterrole further --verb get --resource configmaps")
	require.Contains(t, works(asBob+"kedge sudo -- "+read), "clusterrole.rbac.authorization.k8s.io/further")
	works(`kedge workspaces members set-role bob member --sudo=false --workspace Shop`)
	out, err = x.run(t, asBob+"kedge sudo -- "+read)
	require.Error(t, err)
	require.Contains(t, out, "an admin of the workspace can give you sudo")
}

var varying = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|\b\d+m?\d*s\b`)

func normal(s string) string {
	return strings.Join(strings.Fields(varying.ReplaceAllString(s, "*")), " ")
}

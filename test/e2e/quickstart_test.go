package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// The test runs the commands of the README's quick start against a hub that is started as by
// make run, and compares their output with the README.
func TestREADME_quickStartWorks(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)<!-- quick start -->\n```console\n(.*?)```").FindSubmatch(readme)
	require.NotNil(t, block, "README.md has the quick start between its marks")

	work := t.TempDir()
	data := filepath.Join(work, ".data")
	require.NoError(t, os.Mkdir(data, 0o700))
	h := startHub(t, data, freePort(t))
	require.NoError(t, os.WriteFile(filepath.Join(data, "alice.token"), []byte(framework.Token("alice")), 0o600))
	bin, err := filepath.Abs(os.Getenv("KEDGE_TEST_BIN"))
	require.NoError(t, err)
	require.NoError(t, os.Symlink(bin, filepath.Join(work, "bin")))
	environment := append(os.Environ(), "HOME="+work, "KEDGE_CONFIG="+filepath.Join(work, "config.json"))

	// Lines that begin with "$ " are commands, the others are their output. UUIDs, times,
	// ages and column widths can differ.
	var commands []string
	expected := map[string][]string{}
	for line := range strings.Lines(string(block[1])) {
		line = strings.TrimRight(line, "\n")
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			commands = append(commands, command)
		} else if line != "" {
			last := commands[len(commands)-1]
			expected[last] = append(expected[last], line)
		}
	}
	require.NotEmpty(t, commands)
	var exports []string
	for _, command := range commands {
		typed := strings.ReplaceAll(command, "https://127.0.0.1:9443", h.URL)
		if strings.HasPrefix(typed, "export ") {
			exports = append(exports, typed)
			continue
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.Join(append(exports, typed), "\n"))
		cmd.Dir, cmd.Env, cmd.WaitDelay = work, environment, 10*time.Second
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s\n%s", typed, out)
		printed := normal(strings.ReplaceAll(string(out), h.URL, "https://127.0.0.1:9443"))
		for _, line := range expected[command] {
			require.Contains(t, printed, normal(line), "%s", typed)
		}
	}
}

var varying = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|\b\d+m?\d*s\b`)

func normal(s string) string {
	return strings.Join(strings.Fields(varying.ReplaceAllString(s, "*")), " ")
}

package e2e

import (
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// oldHub is the environment variable with the path of a kedge-hub of the version before.
const oldHub = "KEDGE_TEST_OLD_HUB"

// withEmbeddedKCP are flags of a hub that chooses the ports of its kcp once for a data folder.
func withEmbeddedKCP() []string {
	return []string{"--kcp-port", "0", "--etcd-client-port", "0", "--etcd-peer-port", "0"}
}

// versionBefore returns the path of a kedge-hub of the version before.
func versionBefore(t *testing.T) string {
	t.Helper()
	program := os.Getenv(oldHub)
	if program == "" {
		t.Skipf("%s is not set: make test-upgrade sets it", oldHub)
	}
	return program
}

// TestUpgrade_thereAndBackLosesNothing upgrades a data folder, rolls back and upgrades again. Meanwhile people write, and
// have watches open. Each version changes what the others have made, and finds all that they have answered.
func TestUpgrade_thereAndBackLosesNothing(t *testing.T) {
	t.Parallel()
	before := versionBefore(t)
	today, err := framework.Bin("kedge-hub")
	require.NoError(t, err)
	dir, port := t.TempDir(), freePort(t)
	start := func(program string) *hub {
		return startProgram(t, program, dir, port, append(withEmbeddedKCP(), estateFlags()...)...)
	}
	h := start(before)
	e := newEstate(t, h)
	c := loggedIn(t, h, e)
	l := newLoad(t, h)
	for version, program := range []string{before, today, before, today} {
		if version > 0 {
			want := e.settled(t, h)
			if version == 2 {
				// A version that people roll back from does not always end as it should.
				h.Kill()
			} else {
				require.NoError(t, h.Stop(), "%s", h.Output)
			}
			h = start(program)
			e.holds(t, h, want)
		}
		e.lives(t, h, version)
		e.usesKubeconfigs(t, c)
		e.isRecorded(t, h)
		l.holds(t, h)
		verifiedByItself(t, h)
		t.Logf("version %d, %s: %s; waited for the schemas: %t", version, program, l, strings.Contains(h.Output.String(), "serves the schemas"))
	}
	l.ends(t)
	require.NoError(t, h.Stop(), "%s", h.Output)
}

// loggedIn returns a computer with a login of alice and a kubeconfig of her Workspace.
func loggedIn(t *testing.T, h *hub, e *estate) *computer {
	t.Helper()
	c := newComputer(t, &secrets{all: map[string]bool{}})
	file := c.home + "/alice.token"
	require.NoError(t, os.WriteFile(file, []byte(framework.Token("alice")), 0o600))
	c.kedge(t, "login", "--server", h.URL, "--ca-file", h.CA, "--token-file", file)
	c.kedge(t, "orgs", "use", e.Org)
	c.kedge(t, "workspaces", "use", e.Workspace)
	c.kedge(t, "kubeconfig", "--file", c.home+"/kubeconfig")
	return c
}

// verifiedByItself waits until kedge-hub verify of the version that runs finds no difference.
func verifiedByItself(t *testing.T, h *hub) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		code, out := verifiesWith(t, h.program, "--data-dir", h.dir)
		return framework.Check(code == 0, "kedge-hub verify ends with %d: %s", code, out)
	})
}

// usesKubeconfigs works with that of a person, which runs the exec plugin, and with those of bots.
func (e *estate) usesKubeconfigs(t *testing.T, c *computer) {
	t.Helper()
	out, err := c.kubectl(t, "get", "configmaps", "held", "-o", "name")
	require.NoError(t, err, out)
	for name, b := range e.Bots {
		if b.Kubeconfig == "" || b.Revoked {
			continue
		}
		file := c.home + "/" + name + ".kubeconfig"
		require.NoError(t, os.WriteFile(file, []byte(b.Kubeconfig), 0o600))
		out, errOut, err := framework.Kubectl(t, "", "--kubeconfig", file, "get", "configmaps", "held", "-o", "name")
		require.NoError(t, err, "%s: %s%s", name, out, errOut)
	}
}

// isRecorded requires that the records have every change of the estate that was answered, by whichever version. The
// answer waits for those of the hub that is asked.
func (e *estate) isRecorded(t *testing.T, h *hub) {
	t.Helper()
	c := e.in(http.MethodGet, "/audit", nil)
	c.Header = http.Header{"Accept": {"application/x-ndjson"}}
	raw := h.Do(t, c, http.StatusOK).Raw
	for i, id := range e.changes {
		require.Contains(t, string(raw), strconv.Quote(id), "change %d of %d", i, len(e.changes))
	}
}

package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// backUp makes a backup of a hub with kedge-hub backup, and returns its name.
func backUp(t *testing.T, h *hub) string {
	t.Helper()
	program, err := framework.Bin("kedge-hub")
	require.NoError(t, err)
	folder := t.TempDir()
	out, err := exec.CommandContext(t.Context(), program, "backup", "--data-dir", h.dir, folder, "--keep", "1").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "etcd at revision")
	made, err := filepath.Glob(filepath.Join(folder, "kedge-hub-*Z.tar.gz"))
	require.NoError(t, err)
	require.Len(t, made, 1)
	return made[0]
}

// startRestored starts a hub on a backup in an empty folder. It is told nothing about what ended afterwards.
func startRestored(t *testing.T, file string, port int) *hub {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	out, err := restores(t, file, "--data-dir", dir, "--accept-lost-history")
	require.NoError(t, err, "%s", out)
	require.Contains(t, out, "not known, as you accepted")
	h := startHub(t, dir, port)
	require.NotEmpty(t, reportOf(t, h).Unknown)
	return h
}

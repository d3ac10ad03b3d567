package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/backup"
	"github.com/faroshq/kedge-hub/pkg/kcp/embedded/snapshot"
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

// startRestored starts a hub on a backup in an empty folder.
func startRestored(t *testing.T, file string, port int) *hub {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	dir := filepath.Join(t.TempDir(), "data")
	m, err := backup.Unpack(f, dir, snapshot.Restore)
	require.NoError(t, err)
	require.NotEmpty(t, m.Heads)
	require.Positive(t, m.Etcd.Revision)
	require.NotEmpty(t, m.KCP)
	// This is about the data alone.
	require.NoError(t, os.RemoveAll(filepath.Join(dir, backup.RestoreDir)))
	return startHub(t, dir, port)
}

package e2e

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"filippo.io/age"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/doubles/disktest"
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

// backsUpElsewhere makes backups while the disk of the hub is full. One to another disk is whole. One to a disk that is
// full, or becomes full meanwhile, fails, and leaves nothing that a restore takes.
func (h *hub) backsUpElsewhere(t *testing.T) {
	t.Helper()
	small := disktest.Mount(t, "64k")
	old := filepath.Join(small, "old")
	require.NoError(t, os.WriteFile(old, []byte("the one before"), 0o600))
	backup := func(to string, flags ...string) (string, error) {
		args := append([]string{"backup", "--data-dir", h.dir, to}, flags...)
		out, err := exec.CommandContext(t.Context(), h.program, args...).CombinedOutput()
		return string(out), err
	}
	refused := func() {
		t.Helper()
		for _, to := range []string{small, filepath.Join(small, "new"), old} {
			out, err := backup(to)
			require.Error(t, err, out)
			require.Contains(t, out, small+" has no room for the backup: ")
			require.Contains(t, out, "make room, such as by removing old backups, or name another place")
		}
	}
	// It is full before the end.
	refused()
	files, err := os.ReadDir(small)
	require.NoError(t, err)
	require.Len(t, files, 1, "what is half is gone")
	kept, err := os.ReadFile(old)
	require.NoError(t, err)
	require.Equal(t, "the one before", string(kept))

	// The shell has made the file, and nobody but the operator can remove it.
	cut := filepath.Join(small, "cut")
	const command = `"$0" backup --data-dir "$1" - > "$2"`
	out, err := exec.CommandContext(t.Context(), "sh", "-c", command, h.program, h.dir, cut).CombinedOutput()
	require.Error(t, err, "%s", out)
	require.Contains(t, string(out), "what was written is none: remove it")
	said, err := restores(t, cut, "--data-dir", filepath.Join(t.TempDir(), "none"), "--accept-lost-history")
	require.Error(t, err)
	require.Contains(t, said, "read the backup: ")
	// It is full from the start.
	refused()

	key, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	elsewhere := filepath.Join(t.TempDir(), "backup")
	said, err = backup(elsewhere, "--encrypt-to", key.Recipient().String())
	require.NoError(t, err, said)
	require.NotContains(t, said, "tell the hub")
	said, err = restores(t, elsewhere, "--data-dir", filepath.Join(t.TempDir(), "none"), "--accept-lost-history")
	require.Error(t, err)
	require.Contains(t, said, "age --decrypt")
	said, err = restores(t, decrypted(t, elsewhere, key), "--data-dir", filepath.Join(t.TempDir(), "data"), "--accept-lost-history")
	require.NoError(t, err, said)
}

// decrypted decrypts a backup as age --decrypt does, and returns the name of the result.
func decrypted(t *testing.T, name string, key age.Identity) string {
	t.Helper()
	from, err := os.Open(name)
	require.NoError(t, err)
	defer func() { _ = from.Close() }()
	plain, err := age.Decrypt(from, key)
	require.NoError(t, err)
	to, err := os.Create(filepath.Join(t.TempDir(), "backup"))
	require.NoError(t, err)
	_, err = io.Copy(to, plain)
	require.NoError(t, errors.Join(err, to.Close()))
	return to.Name()
}

package disktest

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Mount mounts a disk in memory for the time of a test. size is that of tmpfs, such as 512m. To mount takes root, which no
// program that is installed gives, so the test is skipped without it, also with KEDGE_TEST_INSIST.
func Mount(t testing.TB, size string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("a disk that may be filled cannot be mounted, which takes root: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	return dir
}

// Fill writes a file in dir until the disk is full, or goes on writing it, and returns its path.
func Fill(t testing.TB, dir string) (path string) {
	t.Helper()
	path = filepath.Join(dir, "fill")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	zeros, err := os.Open("/dev/zero")
	require.NoError(t, err)
	defer func() { _ = zeros.Close() }()
	_, err = io.Copy(f, zeros)
	require.ErrorIs(t, err, syscall.ENOSPC)
	return path
}

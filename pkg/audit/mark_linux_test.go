package audit

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// smallDisk mounts a disk of its own in memory, which takes root, and returns what fills it.
func smallDisk(t *testing.T) (dir string, fill func()) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("a disk that may be filled cannot be mounted: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	return dir, func() {
		t.Helper()
		f, err := os.OpenFile(filepath.Join(dir, "fill"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		require.NoError(t, err)
		defer func() { _ = f.Close() }()
		zeros, err := os.Open("/dev/zero")
		require.NoError(t, err)
		defer func() { _ = zeros.Close() }()
		_, err = io.Copy(f, zeros)
		require.ErrorIs(t, err, syscall.ENOSPC)
	}
}

// lose writes events until one does not fit: the last page of the file has room for some.
func lose(t *testing.T, l *Log) {
	t.Helper()
	for range 100 {
		if err := l.Write(Event{Action: "end", Object: "bob"}); err != nil {
			require.ErrorIs(t, err, syscall.ENOSPC)
			return
		}
	}
	require.Fail(t, "everything fits on the full disk")
}

func TestOpen_knowsWhatAFullDiskLost(t *testing.T) {
	t.Parallel()
	dir, fill := smallDisk(t)
	file := filepath.Join(dir, "rights.jsonl")
	l, _ := begin(t, file)
	require.NoError(t, l.Write(Event{Action: "first"}))
	fill()
	lose(t, l)
	require.Empty(t, marked(t, file))
	// The mark made room, which something else takes.
	fill()
	lose(t, l)
	again, _ := begin(t, file)
	lose(t, again)
	require.NoError(t, os.Remove(filepath.Join(dir, "fill")))
	require.Equal(t, 1, lostBefore(t, file))
	require.Equal(t, "\n", marked(t, file))
}

// The version before forgot at its end what it lost on the full disk.
func TestOpen_trustsNoChainWithoutAMarkOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir, fill := smallDisk(t)
	file := filepath.Join(dir, "rights.jsonl")
	l, closing, err := Open(t.Context(), Options{File: file, MaxSize: 1}, prometheus.NewRegistry())
	require.NoError(t, err)
	require.NoError(t, l.Write(Event{Action: "first"}))
	closing()
	require.NoError(t, os.Remove(file+markSuffix))
	fill()
	begin(t, file)
	require.Empty(t, marked(t, file))
	require.NoFileExists(t, file+markSuffix+".new")
	require.NoError(t, os.Remove(filepath.Join(dir, "fill")))
	require.Equal(t, 1, lostBefore(t, file))
}

package audit

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/doubles/disktest"
)

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
	dir := disktest.Mount(t, "256k")
	file := filepath.Join(dir, "rights.jsonl")
	l, _ := begin(t, file)
	require.NoError(t, l.Write(Event{Action: "first"}))
	disktest.Fill(t, dir)
	lose(t, l)
	require.Empty(t, marked(t, file))
	// The mark made room, which something else takes.
	disktest.Fill(t, dir)
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
	dir := disktest.Mount(t, "256k")
	file := filepath.Join(dir, "rights.jsonl")
	l, closing, err := Open(t.Context(), Options{File: file, MaxSize: 1}, prometheus.NewRegistry())
	require.NoError(t, err)
	require.NoError(t, l.Write(Event{Action: "first"}))
	closing()
	require.NoError(t, os.Remove(file+markSuffix))
	disktest.Fill(t, dir)
	begin(t, file)
	require.Empty(t, marked(t, file))
	require.NoFileExists(t, file+markSuffix+".new")
	require.NoError(t, os.Remove(filepath.Join(dir, "fill")))
	require.Equal(t, 1, lostBefore(t, file))
}

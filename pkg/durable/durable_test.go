package durable_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/durable"
)

func TestReplace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	require.NoError(t, durable.Replace(name, []byte("a long first one"), 0o600))
	require.NoError(t, durable.Replace(name, []byte("second"), 0o640))
	raw, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "second", string(raw))
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o640), info.Mode().Perm())
	// What a kill left is no part of the next one.
	require.NoError(t, os.WriteFile(name+".new", []byte("a part of what a killed process wrote"), 0o600))
	require.NoError(t, durable.Replace(name, []byte("third"), 0o600))
	require.Equal(t, []string{"file"}, names(t, dir))
}

func TestReplace_leavesTheFileWhereItFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	taken := filepath.Join(dir, "folder")
	require.NoError(t, os.MkdirAll(filepath.Join(taken, "something"), 0o700))
	require.Error(t, durable.Replace(taken, []byte("content"), 0o600))
	require.Equal(t, []string{"folder"}, names(t, dir), "nothing is left beside it")
	require.ErrorIs(t, durable.Replace(filepath.Join(dir, "missing", "file"), nil, 0o600), fs.ErrNotExist)
	require.ErrorIs(t, durable.Sync(filepath.Join(dir, "missing")), fs.ErrNotExist)
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

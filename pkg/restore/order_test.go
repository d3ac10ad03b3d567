package restore_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/backup"
	"github.com/faroshq/kedge-hub/pkg/restore"
)

func TestOrder_isFoundUntilItIsDone(t *testing.T) {
	t.Parallel()
	dir, source := t.TempDir(), filepath.Join(t.TempDir(), "rights.jsonl")
	require.NoError(t, os.WriteFile(source, []byte("line\n"), 0o600))
	none, err := restore.Find(dir)
	require.NoError(t, err)
	require.Nil(t, none, "a hub that was not restored")
	o := restore.Order{BackupAt: time.Unix(7, 0).UTC(), Heads: []audit.Head{{Replica: "r", Log: audit.Rights, Seq: 3, Hash: "h"}}, AcceptLostHistory: true}
	require.NoError(t, restore.Place(dir, o, []string{source, source}))
	require.NoError(t, os.Remove(source))
	for range 2 {
		found, err := restore.Find(dir)
		require.NoError(t, err)
		require.Len(t, found.Files, 2)
		for _, file := range found.Files {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, "line\n", string(content))
		}
		found.Files = nil
		require.Equal(t, &o, found)
	}
	for range 2 {
		require.NoError(t, restore.Done(dir))
		none, err = restore.Find(dir)
		require.NoError(t, err)
		require.Nil(t, none)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// A restore that was killed before it said what to replay has no history to judge by.
func TestOrder_thatIsMissingIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, backup.RestoreDir), 0o700))
	_, err := restore.Find(dir)
	require.ErrorContains(t, err, "interrupted")
}

func TestHold_lastsUntilItsRelease(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	held, err := restore.Held(dir)
	require.NoError(t, err)
	require.False(t, held)
	for range 2 {
		require.NoError(t, restore.Hold(dir))
		held, err = restore.Held(dir)
		require.NoError(t, err)
		require.True(t, held)
	}
	for range 2 {
		require.NoError(t, restore.Release(dir))
		held, err = restore.Held(dir)
		require.NoError(t, err)
		require.False(t, held)
	}
}

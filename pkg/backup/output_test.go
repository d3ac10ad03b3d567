package backup_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/faroshq/kedge-hub/pkg/backup"
)

// say returns a func that writes a text and then returns err.
func say(text string, err error) func(io.Writer) error {
	return func(w io.Writer) error {
		_, written := io.WriteString(w, text)
		return errors.Join(written, err)
	}
}

func TestReplace_leavesTheOldFileAtAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "backup")
	full := errors.New("no space left on device")
	require.ErrorIs(t, backup.Replace(name, say("half", full)), full)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, backup.Replace(name, say("one", nil)))
	require.ErrorIs(t, backup.Replace(name, say("half", full)), full)
	require.Equal(t, "one", mustRead(t, name))
	require.NoError(t, backup.Replace(name, say("two", nil)))
	require.Equal(t, "two", mustRead(t, name))
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	left, err = os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.ErrorContains(t, backup.Replace(dir, say("one", nil)), "is no regular file")
}

// A large file is written out while it grows, in pieces of which none has the size of a write.
func TestReplace_writesALargeFileWhole(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "backup")
	var want strings.Builder
	require.NoError(t, backup.Replace(name, func(w io.Writer) error {
		for n := range 1000 {
			if _, err := fmt.Fprintf(io.MultiWriter(w, &want), "%d%s", n, strings.Repeat("x", 3000)); err != nil {
				return err
			}
		}
		return nil
	}))
	require.Equal(t, want.String(), mustRead(t, name))
}

func TestReplace_removesWhatAKilledOneLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, map[string]string{".kedge-hub-backup-123": "half", "notes": ""})
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".kedge-hub-backup-folder"), 0o700))
	require.NoError(t, backup.Replace(filepath.Join(dir, "outer"), func(w io.Writer) error {
		// The outer file is being written, so the inner call leaves it.
		return say("outer", backup.Replace(filepath.Join(dir, "inner"), say("inner", nil)))(w)
	}))
	require.Equal(t, "outer", mustRead(t, filepath.Join(dir, "outer")))
	require.Equal(t, "inner", mustRead(t, filepath.Join(dir, "inner")))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.Equal(t, []string{".kedge-hub-backup-folder", "inner", "notes", "outer"}, names)
}

// Many processes that look for what was left at once do not take each other's files.
func TestReplace_leavesWhatOthersBegin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var all errgroup.Group
	for n := range 100 {
		all.Go(func() error {
			return backup.Replace(filepath.Join(dir, fmt.Sprint("backup-", n)), say("whole", nil))
		})
	}
	require.NoError(t, all.Wait())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 100)
}

func TestPrune_removesNothingOfOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := time.Date(2026, 11, 24, 3, 0, 0, 0, time.FixedZone("", 3600))
	require.Equal(t, "kedge-hub-2026-11-24T02-00-00Z.tar.gz", backup.NameAt(at, false))
	others := []string{
		"notes", "kedge-hub-2020-01-01T00-00-00Z.tar.gz.part", "kedge-hub-2020-01-01T00-00-00Z", "kedge-hub-2020-13-01T00-00-00Z.tar.gz",
		"kedge-hub-2020-1-1T00-00-00Z.tar.gz", "other-2020-01-01T00-00-00Z.tar.gz", "kedge-hub-2020-01-01T00-00-00.5Z.tar.gz",
		"kedge-hub-2020-01-01T00-00-00Z.age", "kedge-hub-2020-01-01T00-00-00Z.tar.gz.age.age",
	}
	want := map[string]string{}
	for _, name := range others {
		want[name] = ""
	}
	all := map[string]string{}
	for hour := range 5 {
		all[backup.NameAt(at.Add(time.Duration(hour)*time.Hour), hour%2 == 1)] = ""
	}
	put(t, dir, want)
	put(t, dir, all)
	folder := backup.NameAt(at.AddDate(-1, 0, 0), false)
	require.NoError(t, os.Mkdir(filepath.Join(dir, folder), 0o700))
	newest := backup.NameAt(at.Add(4*time.Hour), false)

	removed, err := backup.Prune(dir, 9, newest)
	require.NoError(t, err)
	require.Empty(t, removed)
	removed, err = backup.Prune(dir, 3, newest)
	require.NoError(t, err)
	require.Equal(t, []string{backup.NameAt(at.Add(time.Hour), true), backup.NameAt(at, false)}, removed)
	// The clock was set back: what was made stays.
	made := backup.NameAt(at.AddDate(-1, 0, 1), false)
	put(t, dir, map[string]string{made: ""})
	removed, err = backup.Prune(dir, 1, made)
	require.NoError(t, err)
	require.Len(t, removed, 3)
	want[made] = ""
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), folder) {
			require.Contains(t, want, e.Name())
		}
	}
	require.Len(t, entries, len(want)+1)
}

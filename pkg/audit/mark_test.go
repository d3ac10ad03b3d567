package audit

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// disk is where a chain goes. It can be full.
type disk struct {
	io.Writer
	full bool
}

func (d *disk) Write(p []byte) (int, error) {
	if d.full {
		return 0, syscall.ENOSPC
	}
	return d.Writer.Write(p)
}

// begin opens the log of a hub. A hub that is not told to stop is one that is killed: nothing is buffered.
func begin(t *testing.T, file string) (*Log, *disk) {
	t.Helper()
	l, closing, err := Open(t.Context(), Options{File: file, MaxSize: 1}, prometheus.NewRegistry())
	require.NoError(t, err)
	t.Cleanup(closing)
	d := &disk{Writer: l.rights.to}
	l.rights.to = d
	return l, d
}

// lostBefore starts the hub again, and returns what its first event says.
func lostBefore(t *testing.T, file string) (lost int) {
	t.Helper()
	l, _ := begin(t, file)
	require.NoError(t, l.Write(Event{Action: "after"}))
	require.NoError(t, Lines(file, 0, func(line Line) bool { lost = line.Event.Lost; return true }))
	return lost
}

func marked(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file + markSuffix)
	require.NoError(t, err)
	return string(text)
}

// An administrator removes somebody while the disk is full, and the hub is killed: a restore must learn that it does not
// know all that ended.
func TestOpen_knowsThatAKilledHubLostEvents(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		until func(t *testing.T, l *Log, d *disk, file string)
		lost  int
	}{
		"before": {func(*testing.T, *Log, *disk, string) {}, 0},
		"before the ending": {func(t *testing.T, l *Log, d *disk, file string) {
			d.full = true
			require.Error(t, l.Write(Event{Stage: StageIntent, Action: "end"}))
			require.Empty(t, marked(t, file))
		}, 1},
		"in the ending": {func(t *testing.T, l *Log, d *disk, file string) {
			d.full = true
			_ = l.Around(Event{Action: "end"}, true, func() error {
				require.Empty(t, marked(t, file), "it says so before")
				return nil
			})
		}, 1},
		"after the outcome alone was lost": {func(_ *testing.T, l *Log, d *disk, _ string) {
			_ = l.Around(Event{Action: "end"}, true, func() error { d.full = true; return nil })
		}, 1},
		"after the event that counts it, before the mark": {func(t *testing.T, l *Log, d *disk, file string) {
			d.full = true
			_ = l.Around(Event{Action: "end"}, true, func() error { return nil })
			d.full = false
			// The mark cannot be mended.
			require.NoError(t, os.MkdirAll(filepath.Join(file+markSuffix+".new", "taken"), 0o700))
			require.NoError(t, l.Write(Event{Action: "x"}))
			require.Empty(t, marked(t, file))
			require.NoError(t, os.RemoveAll(file+markSuffix+".new"))
		}, 1},
		"after the event, before it is on the disk": {func(t *testing.T, l *Log, d *disk, file string) {
			d.full = true
			_ = l.Around(Event{Action: "end"}, true, func() error { return nil })
			d.full, d.Writer = false, io.Discard
			require.NoError(t, l.rights.file.to.Close())
			require.NoError(t, l.Write(Event{Action: "x"}))
			require.Empty(t, marked(t, file))
			require.NoFileExists(t, file+markSuffix+".new")
		}, 1},
		"after the mark": {func(t *testing.T, l *Log, d *disk, file string) {
			d.full = true
			_ = l.Around(Event{Action: "end"}, true, func() error { return nil })
			d.full = false
			require.NoError(t, l.Write(Event{Action: "x"}))
			require.NotEmpty(t, marked(t, file))
		}, 0},
		"after another start, before an event": {func(t *testing.T, l *Log, d *disk, file string) {
			d.full = true
			_ = l.Around(Event{Action: "end"}, true, func() error { return nil })
			begin(t, file)
		}, 1},
		"after another start, on the disk that is still full": {func(t *testing.T, l *Log, d *disk, file string) {
			d.full = true
			_ = l.Around(Event{Action: "end"}, true, func() error { return nil })
			again, d := begin(t, file)
			d.full = true
			require.Error(t, again.Write(Event{Action: "x"}))
		}, 1},
		"in writes, which no restore reads": {func(t *testing.T, l *Log, _ *disk, file string) {
			l.writes.to = &disk{full: true}
			require.Error(t, l.Write(Event{Action: "kubernetes delete"}))
			require.NoFileExists(t, Options{File: file}.WritesFile()+markSuffix)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "rights.jsonl")
			l, d := begin(t, file)
			require.NoError(t, l.Write(Event{Action: "first"}))
			test.until(t, l, d, file)
			require.Equal(t, test.lost, lostBefore(t, file))
			require.Equal(t, "\n", marked(t, file))
			require.Zero(t, lostBefore(t, file), "it is said once")
		})
	}
}

// A chain that the version before has written is not called broken, and that version keeps what this one knows.
func TestOpen_takesOverAChainWithoutAMark(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "rights.jsonl")
	before := func() (*Log, *disk) {
		l, d := begin(t, file)
		l.rights.mark, l.rights.lost = nil, 0
		return l, d
	}
	l, _ := before()
	require.NoError(t, l.Write(Event{Action: "x"}))
	require.NoError(t, os.Remove(file+markSuffix))
	require.Zero(t, lostBefore(t, file))
	require.Equal(t, "\n", marked(t, file))

	l, d := begin(t, file)
	d.full = true
	require.Error(t, l.Write(Event{Action: "x"}))
	l, _ = before()
	require.NoError(t, l.Write(Event{Action: "x"}))
	require.Equal(t, 1, lostBefore(t, file))
}

// Where the mark cannot be changed either, endings work all the same, and the operator is told.
func TestAround_endsWhereTheMarkCannotBeChanged(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "rights.jsonl")
	l, d := begin(t, file)
	d.full = true
	require.NoError(t, os.Remove(file+markSuffix))
	require.NoError(t, os.Mkdir(file+markSuffix, 0o700))
	ended := false
	require.NoError(t, l.Around(Event{Action: "end"}, true, func() error { ended = true; return nil }))
	require.True(t, ended)
	require.ErrorIs(t, l.Err(), syscall.ENOSPC)
	require.ErrorContains(t, l.Err(), "a restart would forget that")
	_, _, err := Open(t.Context(), Options{File: file}, prometheus.NewRegistry())
	require.ErrorContains(t, err, "is no file")

	require.NoError(t, os.Remove(file+markSuffix))
	require.Error(t, l.Write(Event{Action: "x"}))
	require.NotContains(t, l.Err().Error(), "a restart")
	require.Equal(t, 1, lostBefore(t, file), "it is tried again")
}

// A request that outlives the stop of the hub loses its outcome, as with a kill. What ends without an intent is not known.
func TestLog_knowsWhatEndsBehindItsEnd(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "rights.jsonl")
	l, closing, err := Open(t.Context(), Options{File: file, MaxSize: 1}, prometheus.NewRegistry())
	require.NoError(t, err)
	require.NoError(t, l.Around(Event{Action: "end"}, true, func() error { closing(); return nil }))
	require.ErrorIs(t, l.Err(), os.ErrClosed)
	require.Equal(t, "\n", marked(t, file))
	require.NoError(t, l.Around(Event{Action: "end"}, true, func() error { return nil }))
	require.Empty(t, marked(t, file))
	require.Equal(t, 1, lostBefore(t, file))
}

// Who gives a reader all files of the folder reads the mark, too.
func TestLines_findNothingInAMark(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"whole": "\n", "broken": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "rights.jsonl")
			l, d := begin(t, file)
			require.NoError(t, l.Write(Event{Action: "x"}))
			if d.full = text == ""; d.full {
				require.Error(t, l.Write(Event{Action: "x"}))
			}
			require.Equal(t, text, marked(t, file))
			files, err := Files(file)
			require.NoError(t, err)
			require.Equal(t, []string{file}, files)
			found, err := filepath.Glob(filepath.Join(filepath.Dir(file), "rights*"))
			require.NoError(t, err)
			require.Len(t, found, 2)
			v := NewVerifier()
			for _, f := range found {
				require.NoError(t, v.File(f))
			}
			require.Empty(t, v.Done())
		})
	}
}

// The first event of the new file counts what was lost in the one before.
func TestLog_mendsTheMarkInAFileThatIsNew(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "rights.jsonl")
	l, d := begin(t, file)
	require.NoError(t, l.Write(Event{Action: "first"}))
	d.full = true
	require.Error(t, l.Write(Event{Action: "end"}))
	d.full = false
	l.rights.file.size = 2 << 20
	require.NoError(t, l.Write(Event{Action: "x"}))
	require.Equal(t, "\n", marked(t, file))
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, 1, bytes.Count(written, []byte(`"lost":1`)))
	require.Zero(t, lostBefore(t, file))
}

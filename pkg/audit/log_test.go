package audit

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// hanging is a disk that does not answer for a while.
type hanging struct{ asked, answers chan struct{} }

func (h hanging) Write(p []byte) (int, error) {
	h.asked <- struct{}{}
	<-h.answers
	return len(p), nil
}

// Who asks for the ends of the chains, such as a metric or a backup, and the stop of the hub, wait for no disk.
func TestLog_answersWhileTheDiskHangs(t *testing.T) {
	t.Parallel()
	l, closing, err := Open(t.Context(), Options{File: filepath.Join(t.TempDir(), "rights.jsonl"), MaxSize: 1}, prometheus.NewRegistry())
	require.NoError(t, err)
	defer closing()
	require.NoError(t, l.Write(Event{Action: "first"}))
	before := l.Heads()
	require.EqualValues(t, 1, before[0].Seq)
	disk := hanging{make(chan struct{}), make(chan struct{})}
	l.rights.to = disk
	defer close(disk.answers)
	written := make(chan error, 1)
	go func() { written <- l.Write(Event{Action: "second"}) }()
	<-disk.asked
	answered := make(chan []Head)
	go func() {
		closing()
		answered <- l.Heads()
	}()
	select {
	case heads := <-answered:
		require.Equal(t, before, heads)
	case <-time.After(10 * time.Second):
		require.Fail(t, "it waits for the disk")
	}
	disk.answers <- struct{}{}
	require.NoError(t, <-written)
	require.EqualValues(t, 2, l.Heads()[0].Seq)
}

// A disk that hangs holds nobody up for longer than patience: what gives rights is refused, what ends them is carried out,
// and the log says afterwards how many events it lacks.
func TestLog_givesUpOnADiskThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := hanging{make(chan struct{}, 9), make(chan struct{})}
		l := New(t.Context(), disk)
		began := time.Now()
		require.ErrorIs(t, l.Write(Event{Action: "first"}), errHangs)
		require.Equal(t, patience, time.Since(began))
		require.ErrorIs(t, l.Err(), errHangs)
		made := false
		grant := func() error { made = true; return nil }
		require.ErrorIs(t, l.Around(Event{Action: "grant"}, false, grant), errHangs)
		require.False(t, made)
		require.NoError(t, l.Around(Event{Action: "end"}, true, grant))
		require.True(t, made)
		require.Equal(t, patience, time.Since(began), "only the first one waits")

		disk.answers <- struct{}{}
		synctest.Wait()
		require.NoError(t, l.Err())
		require.EqualValues(t, 1, l.Heads()[0].Seq, "the first is written after all")
		text := &bytes.Buffer{}
		l.rights.to = text
		require.NoError(t, l.Write(Event{Action: "next"}))
		var next Event
		require.NoError(t, json.Unmarshal(text.Bytes(), &next))
		require.Equal(t, 3, next.Lost, "the grant, and the intent and the outcome of the end")
		require.EqualValues(t, 2, next.Seq)
	})
}

// A hub that is killed after a disk has hung remembers that it lost what ended meanwhile, whatever had hung.
func TestLog_remembersWhatItGaveUpOn(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]Event{"rights": {Action: "first"}, "writes": {Action: "kubernetes create"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "rights.jsonl")
			synctest.Test(t, func(t *testing.T) {
				l, _ := begin(t, file)
				require.Equal(t, "\n", marked(t, file))
				disk := hanging{make(chan struct{}, 1), make(chan struct{})}
				l.rights.to, l.writes.to = disk, disk
				require.ErrorIs(t, l.Write(first), errHangs)
				require.NoError(t, l.Around(Event{Action: "end"}, true, func() error { return nil }))
				disk.answers <- struct{}{}
				synctest.Wait()
				require.Empty(t, marked(t, file))
			})
			require.Equal(t, 1, lostBefore(t, file))
		})
	}
}

// Those who wait for a writer that returns in time get their turn.
func TestLog_waitsForADiskThatIsSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(t.Context(), slow{})
		var writers errgroup.Group
		for range 9 {
			writers.Go(func() error { return l.Write(Event{Action: "any"}) })
		}
		require.NoError(t, writers.Wait())
		require.EqualValues(t, 9, l.Heads()[0].Seq)
	})
}

// slow is a disk that takes almost as long as an event waits.
type slow struct{}

func (slow) Write(p []byte) (int, error) {
	<-time.After(patience - time.Second)
	return len(p), nil
}

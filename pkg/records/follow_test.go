package records_test

import (
	"os"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/records"
)

// A file is put away after its end was read, and the event before that is read before those of the next file.
func TestFollower_readsTheEventBeforeARotation(t *testing.T) {
	t.Parallel()
	o := audit.Options{File: audit.DefaultFile(t.TempDir()), MaxSize: 1}
	l, closing, err := audit.Open(t.Context(), o, prometheus.NewRegistry())
	require.NoError(t, err)
	defer closing()
	write := func() { require.NoError(t, l.Write(padded())) }
	f := records.NewFollower(o.File, audit.Rights)
	defer f.Close()
	require.Empty(t, next(t, f))
	write()
	require.Equal(t, []uint64{1}, next(t, f))
	f.AtEnd(func() {
		for files := []string{}; len(files) < 2; files, err = audit.Files(o.File) {
			require.NoError(t, err)
			write()
		}
	})
	last := uint64(1)
	for last < l.Heads()[0].Seq || last == 1 {
		for _, seq := range next(t, f) {
			require.Equal(t, last+1, seq)
			last = seq
		}
	}
	require.Greater(t, last, uint64(3))
}

func next(t *testing.T, f *records.Follower) []uint64 {
	t.Helper()
	seqs, lost, err := f.Next()
	require.NoError(t, err)
	require.Zero(t, lost)
	return seqs
}

// A reader that is as quick as the log, and one that is behind by files, read each number once, over many rotations.
func TestFollower_readsEveryEventOverRotations(t *testing.T) {
	t.Parallel()
	o := audit.Options{File: audit.DefaultFile(t.TempDir()), MaxSize: 1}
	l, closing, err := audit.Open(t.Context(), o, prometheus.NewRegistry())
	require.NoError(t, err)
	defer closing()
	const n = 2000
	var written atomic.Bool
	go func() {
		defer written.Store(true)
		for range n {
			_ = l.Write(padded())
		}
	}()
	quick, slow := records.NewFollower(o.File, audit.Rights), records.NewFollower(o.File, audit.Rights)
	defer quick.Close()
	defer slow.Close()
	read := map[*records.Follower]uint64{}
	follow := func(f *records.Follower) {
		for _, seq := range next(t, f) {
			require.Equal(t, read[f]+1, seq)
			read[f] = seq
		}
	}
	for i := 0; ; i++ {
		all := written.Load()
		follow(quick)
		if i%20 == 0 || all {
			follow(slow)
		}
		if last := l.Heads()[0].Seq; all && read[quick] == last && read[slow] == last {
			break
		}
	}
	files, err := audit.Files(o.File)
	require.NoError(t, err)
	require.Greater(t, len(files), 10)
	require.Greater(t, read[quick], uint64(n), "the rotations are events")
}

// A disk that was full took all of an event but the end of its line. The event is in the chain.
func TestFollower_readsAnEventWithoutTheEndOfItsLine(t *testing.T) {
	t.Parallel()
	o := audit.Options{File: audit.DefaultFile(t.TempDir()), MaxSize: 1}
	reopened := func() (*audit.Log, func()) {
		l, closing, err := audit.Open(t.Context(), o, prometheus.NewRegistry())
		require.NoError(t, err)
		return l, closing
	}
	l, closing := reopened()
	var want []uint64
	size := int64(0)
	for size < 1<<20 {
		require.NoError(t, l.Write(padded()))
		info, err := os.Stat(o.File)
		require.NoError(t, err)
		want, size = append(want, uint64(len(want)+1)), info.Size()
	}
	closing()
	require.NoError(t, os.Truncate(o.File, size-1))
	f := records.NewFollower(o.File, audit.Rights)
	defer f.Close()
	var read []uint64
	drain := func() {
		for seqs := next(t, f); len(seqs) > 0; seqs = next(t, f) {
			read = append(read, seqs...)
		}
	}
	drain()
	require.Equal(t, want, read)
	// The next event puts the file away, with the line as it is.
	l, closing = reopened()
	defer closing()
	require.NoError(t, l.Write(audit.Event{Action: "POST /api/orgs"}))
	drain()
	last := l.Heads()[0].Seq
	require.Equal(t, append(want, last-1, last), read)
}

package audit

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
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

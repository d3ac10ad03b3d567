package embedded

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/backup"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp/embedded/snapshot"
)

// kcpIn is the folder of kcp in a data folder.
func kcpIn(data string) string { return filepath.Join(data, "kcp") }

// writes are writes to etcd, one after the other: a key of its own for each, and a key that makes history.
type writes struct {
	mu sync.Mutex
	// acknowledged are the revisions of the keys, by number.
	acknowledged map[int]int64
	more         *sync.Cond
}

func keyOfWrite(n int) string { return fmt.Sprintf("written/%d", n) }

// startWrites writes until the test ends. What etcd refuses, because it is full, was not written.
func startWrites(t *testing.T, k *keeper, history int) *writes {
	t.Helper()
	w := &writes{acknowledged: map[int]int64{}}
	w.more = sync.NewCond(&w.mu)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { stop(); running.Wait() })
	running.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			if history > 0 {
				_, _ = k.etcd.Put(ctx, "hot", strings.Repeat("x", history))
			}
			if put, err := k.etcd.Put(ctx, keyOfWrite(n), strconv.Itoa(n)); err == nil {
				w.mu.Lock()
				w.acknowledged[n] = put.Header.Revision
				w.more.Broadcast()
				w.mu.Unlock()
			}
		}
	})
	return w
}

// await waits until more of the writes were acknowledged.
func (w *writes) await(more int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for want := len(w.acknowledged) + more; len(w.acknowledged) < want; {
		w.more.Wait()
	}
}

// requireIn restores a backup, and requires that it has what was acknowledged before its revision.
func (w *writes) requireIn(t *testing.T, archive []byte) {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	m, err := backup.Unpack(bytes.NewReader(archive), data, snapshot.Restore)
	require.NoError(t, err)
	got, err := newEtcdIn(t, kcpIn(data)).etcd.Get(t.Context(), "written/", clientv3.WithPrefix())
	require.NoError(t, err)
	has := map[string]string{}
	for _, kv := range got.Kvs {
		has[string(kv.Key)] = string(kv.Value)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	before := 0
	for n, revision := range w.acknowledged {
		if revision <= m.Etcd.Revision {
			before++
			require.Equal(t, strconv.Itoa(n), has[keyOfWrite(n)], "revision %d of %d", revision, m.Etcd.Revision)
		}
	}
	require.Positive(t, before)
}

// archive makes a backup of a hub that has no more than its etcd. The reader of the snapshot is what slowed makes of it.
func archive(t *testing.T, s *Server, slowed func(io.Reader) io.Reader) ([]byte, error) {
	t.Helper()
	out := &bytes.Buffer{}
	_, err := backup.Write(t.Context(), out, backup.Source{
		Dir: filepath.Dir(s.options.Dir), Now: time.Now,
		Heads: func(context.Context) (own, ended []audit.Head, err error) { return nil, nil, nil },
		Etcd: func(ctx context.Context, write func(revision, size int64, r io.Reader) error) error {
			return s.Snapshot(ctx, func(revision, size int64, r io.Reader) error { return write(revision, size, slowed(r)) })
		},
	})
	return out.Bytes(), err
}

func atOnce(r io.Reader) io.Reader { return r }

// reading calls a function before each read.
type reading struct {
	io.Reader
	before func()
}

// Read implements io.Reader.
func (r reading) Read(p []byte) (int, error) {
	r.before()
	return r.Reader.Read(p[:min(len(p), 4<<10)])
}

// newFragmented starts an etcd, half of which is free.
func newFragmented(t *testing.T) (*Server, *keeper) {
	t.Helper()
	s, k := newServerIn(t, kcpIn(t.TempDir()))
	for n := range 12 {
		require.NoError(t, k.put(t, fmt.Sprint("object", n), mib))
	}
	gone, err := k.etcd.Delete(t.Context(), "object1", clientv3.WithPrefix())
	require.NoError(t, err)
	require.NoError(t, k.compact(t.Context(), gone.Header.Revision))
	return s, k
}

// The keeper makes room in a full etcd again and again, while backups are made one after the other.
func TestSnapshot_isWholeBesideTheKeeper(t *testing.T) {
	t.Parallel()
	s, k := newServerIn(t, kcpIn(t.TempDir()))
	w := startWrites(t, k, mib)
	k.start(t)
	var beside [][]byte
	for len(beside) < 3 {
		began := k.done("defragment", "ok")
		raw, err := archive(t, s, atOnce)
		if errs.Is(err, errs.Unavailable) {
			// It was too slow, and its turn comes again.
			continue
		}
		require.NoError(t, err)
		if k.done("defragment", "ok") > began {
			beside = append(beside, raw)
		}
	}
	// What was refused is written again.
	w.await(3)
	for _, raw := range beside {
		w.requireIn(t, raw)
	}
}

// A defragmentation that is due during a backup waits for it. Without that it would hold all writes meanwhile.
func TestSnapshot_isWholeBeforeADefragmentation(t *testing.T) {
	t.Parallel()
	s, k := newFragmented(t)
	s.copying.patience = long
	w := startWrites(t, k, 0)
	w.await(10)
	before, err := k.measure(t.Context())
	require.NoError(t, err)
	defragmented := make(chan error, 1)
	var once sync.Once
	raw, err := archive(t, s, func(r io.Reader) io.Reader {
		return reading{r, func() {
			once.Do(func() {
				go func() { defragmented <- k.defragment(context.Background()) }()
				w.await(100)
			})
		}}
	})
	require.NoError(t, err)
	require.NoError(t, <-defragmented)
	after, err := k.measure(t.Context())
	require.NoError(t, err)
	require.Less(t, after.size, before.size-mib)
	w.await(10)
	w.requireIn(t, raw)
}

// A backup whose reader is too slow is ended by a defragmentation that is due. The next one is whole.
func TestSnapshot_isWholeAfterADefragmentation(t *testing.T) {
	t.Parallel()
	s, k := newFragmented(t)
	s.copying.patience = time.Millisecond
	w := startWrites(t, k, 0)
	defragmented := make(chan error, 1)
	var once sync.Once
	_, err := archive(t, s, func(r io.Reader) io.Reader {
		return reading{r, func() {
			once.Do(func() { go func() { defragmented <- k.defragment(context.Background()) }() })
			w.await(1)
		}}
	})
	require.ErrorIs(t, err, errNeedsRoom)
	raw, err := archive(t, s, atOnce)
	require.NoError(t, err)
	require.NoError(t, <-defragmented)
	w.requireIn(t, raw)
}

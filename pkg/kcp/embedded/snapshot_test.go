package embedded

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/faroshq/kedge-hub/pkg/kcp/embedded/snapshot"
)

// save writes a snapshot of etcd to a file and returns the revision that it has at least.
func (k *keeper) save(t *testing.T, file string) (revision int64) {
	t.Helper()
	err := snapshotOf(t.Context(), etcdserverpb.NewMaintenanceClient(k.etcd.ActiveConnection()), func(r, size int64, from io.Reader) error {
		raw, err := io.ReadAll(io.LimitReader(from, size))
		require.NoError(t, err)
		require.Len(t, raw, int(size))
		sum := sha256.Sum256(raw[:size-sha256.Size])
		require.Equal(t, sum[:], raw[size-sha256.Size:], "the hash of etcd")
		rest, err := io.ReadAll(from)
		require.NoError(t, err)
		require.Empty(t, rest)
		revision = r
		return os.WriteFile(file, raw, 0o600)
	})
	require.NoError(t, err)
	return revision
}

func TestRestore_hasWhatWasThereAndNoFuture(t *testing.T) {
	t.Parallel()
	before := newEtcd(t)
	for n := range 100 {
		require.NoError(t, before.put(t, strconv.Itoa(n), 10<<10))
	}
	file := filepath.Join(t.TempDir(), "snapshot")
	revision := before.save(t, file)
	// Clients of the lost etcd have seen these.
	for range 10 {
		require.NoError(t, before.put(t, "later", 1))
	}

	dir := t.TempDir()
	require.NoError(t, snapshot.Restore(file, filepath.Join(dir, etcdDir)))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing else is left")
	after := newEtcdIn(t, dir)
	all, err := after.etcd.Get(t.Context(), "", clientv3.WithPrefix(), clientv3.WithCountOnly())
	require.NoError(t, err)
	require.EqualValues(t, 100, all.Count)
	require.GreaterOrEqual(t, all.Header.Revision, revision+1_000_000_000)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, from := range []int64{revision, revision + 5, revision + 999_999_999} {
		answer := <-after.etcd.Watch(ctx, "later", clientv3.WithRev(from))
		require.ErrorIs(t, answer.Err(), rpctypes.ErrCompacted, "a watch from revision %d", from)
	}
	require.NoError(t, after.put(t, "new", 1))
}

func TestRestore_refusesASnapshotThatWasChanged(t *testing.T) {
	t.Parallel()
	k := newEtcd(t)
	require.NoError(t, k.put(t, "key", 1))
	file := filepath.Join(t.TempDir(), "snapshot")
	k.save(t, file)
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	raw[len(raw)/2] ^= 1
	garbage := bytes.Repeat([]byte("garbage"), 1<<10)[:4096]
	sum := sha256.Sum256(garbage)
	for name, raw := range map[string][]byte{"changed": raw, "cut off": raw[:len(raw)-512], "no database": append(garbage, sum[:]...), "empty": {}} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(file, raw, 0o600))
		require.Error(t, snapshot.Restore(file, filepath.Join(dir, etcdDir)), name)
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, entries, name)
	}
}

func TestCopying_aDefragmentationDoesNotWaitForASlowReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCopying()
		slow := make(chan error, 1)
		go func() {
			slow <- c.snapshot(t.Context(), func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			})
		}()
		synctest.Wait()
		began := time.Now()
		require.NoError(t, c.defragment(func() error { return nil }))
		require.Equal(t, patience, time.Since(began))
		require.ErrorIs(t, <-slow, errNeedsRoom)

		// One that is about to end is left to it.
		go func() {
			slow <- c.snapshot(t.Context(), func(ctx context.Context) error {
				<-time.After(patience / 2)
				return ctx.Err()
			})
		}()
		synctest.Wait()
		require.NoError(t, c.defragment(func() error { return nil }))
		require.NoError(t, <-slow)
	})
}

func TestCopying_aSnapshotWaitsForADefragmentation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, done := newCopying(), make(chan struct{})
		go func() { _ = c.defragment(func() error { <-done; return nil }) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		failed := errors.New("not now")
		require.ErrorIs(t, c.snapshot(ctx, func(context.Context) error { return failed }), context.DeadlineExceeded)
		close(done)
		require.ErrorIs(t, c.snapshot(t.Context(), func(context.Context) error { return failed }), failed)
	})
}

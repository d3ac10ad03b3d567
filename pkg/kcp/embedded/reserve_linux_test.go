package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/kcp/embedded/disk"
	"github.com/faroshq/kedge-hub/test/doubles/disktest"
)

// etcdOn makes what etcd has made in dir once it runs: a database with a hole in it,
// and a folder for its log.
func etcdOn(t *testing.T, dir string) (*reserve, *os.File) {
	t.Helper()
	r := newReserve(dir)
	for _, name := range []string{"snap", "wal"} {
		require.NoError(t, os.MkdirAll(filepath.Join(r.dir, name), 0o700))
	}
	db, err := os.Create(filepath.Join(r.dir, "snap", "db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	_, err = db.WriteString("held")
	require.NoError(t, err)
	require.NoError(t, db.Truncate(8<<20))
	return r, db
}

// blocks are how many bytes of the disk are a file's.
func blocks(t *testing.T, path string) (size, allocated int64) {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Size(), info.Sys().(*syscall.Stat_t).Blocks * 512
}

// supported skips where the file system allocates nothing ahead.
func supported(t *testing.T, dir string) {
	t.Helper()
	f, err := os.CreateTemp(dir, "")
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	if err := disk.Allocate(f, 0, 1); err != nil {
		t.Skipf("nothing can be allocated ahead in %s: %v", dir, err)
	}
}

func TestReserve_staysAheadOfEtcd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	supported(t, dir)
	r, db := etcdOn(t, dir)
	first, second := filepath.Join(r.dir, "wal", "0.tmp"), filepath.Join(r.dir, "wal", "1.tmp")
	present := filepath.Join(r.dir, "wal", "0.wal")
	require.NoError(t, os.WriteFile(present, nil, 0o600))
	check := func(want int64) {
		t.Helper()
		require.NoError(t, r.hold())
		size, allocated := blocks(t, db.Name())
		require.Equal(t, want, size, "the database is etcd's")
		require.GreaterOrEqual(t, allocated, want+ahead)
		for _, name := range []string{present, first, second} {
			_, allocated := blocks(t, name)
			require.GreaterOrEqual(t, allocated, int64(segment))
		}
	}
	check(8 << 20)
	check(8 << 20)
	held := make([]byte, 5)
	_, err := db.ReadAt(held, 0)
	require.NoError(t, err)
	require.Equal(t, "held\x00", string(held))
	// It grows, and its log goes on to the next file.
	require.NoError(t, db.Truncate(24<<20))
	for n, next := range []string{first, second, first} {
		present = filepath.Join(r.dir, "wal", fmt.Sprintf("%d.wal", n+1))
		require.NoError(t, os.Rename(next, present))
		check(24 << 20)
	}
	// Another database takes its place, as when it is defragmented.
	require.NoError(t, os.Remove(db.Name()))
	_, db = etcdOn(t, dir)
	check(8 << 20)
}

func TestReserve_createsNothingBeforeEtcd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := newReserve(dir)
	r.ready()
	require.NoError(t, r.hold())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "etcd takes folders that are there for data of its own")
}

// etcd removes the file in its hands when it ends, and begins with the first name.
func TestReserve_isUsedByTheNextStart(t *testing.T) {
	t.Parallel()
	r, _ := etcdOn(t, t.TempDir())
	first, second := filepath.Join(r.dir, "wal", "0.tmp"), filepath.Join(r.dir, "wal", "1.tmp")
	require.NoError(t, os.WriteFile(second, []byte("second"), 0o600))
	r.ready()
	held, err := os.ReadFile(first)
	require.NoError(t, err)
	require.Equal(t, "second", string(held))
	// One that is there stays.
	require.NoError(t, os.WriteFile(second, []byte("other"), 0o600))
	r.ready()
	held, err = os.ReadFile(first)
	require.NoError(t, err)
	require.Equal(t, "second", string(held))
}

func TestReserve_letsEtcdWriteToAFullDisk(t *testing.T) {
	t.Parallel()
	dir := disktest.Mount(t, "384m")
	r, db := etcdOn(t, dir)
	// As etcd makes them ready, and cuts them off where it starts anew.
	const made = 64_000_000
	prepared := func(name string) *os.File {
		f, err := os.OpenFile(filepath.Join(r.dir, "wal", name), os.O_RDWR|os.O_CREATE, 0o600)
		require.NoError(t, err)
		t.Cleanup(func() { _ = f.Close() })
		require.NoError(t, syscall.Fallocate(int(f.Fd()), 0, 0, made))
		return f
	}
	present := prepared("0.wal")
	r.ready()
	require.NoError(t, present.Truncate(made/2))
	prepared("0.wal")
	require.NoError(t, r.hold())
	disktest.Fill(t, dir)
	require.NoError(t, r.hold(), "there is nothing to take, and nothing wrong")
	_, err := db.WriteAt(make([]byte, 2*piece), 8<<20+ahead)
	require.ErrorIs(t, err, syscall.ENOSPC, "what is not set aside")
	for at := int64(0); at < 8<<20+ahead; at += 1 << 20 {
		_, err := db.WriteAt(make([]byte, 1<<20), at)
		require.NoError(t, err, "at %d", at)
	}
	require.NoError(t, db.Sync())
	names := next()
	for _, f := range []*os.File{present, prepared(names[0]), prepared(names[1])} {
		_, err := f.WriteAt(make([]byte, 2<<20), made-1<<20)
		require.NoError(t, err, "across its end: %s", f.Name())
	}
}

// The reserve never takes the last of the disk, not even for a moment: from etcd.
func TestReserve_leavesASpare(t *testing.T) {
	t.Parallel()
	dir := disktest.Mount(t, "60m")
	r, db := etcdOn(t, dir)
	require.NoError(t, r.hold())
	_, allocated := blocks(t, db.Name())
	require.Greater(t, allocated, int64(40<<20), "what there is")
	free, err := disk.Free(dir)
	require.NoError(t, err)
	require.GreaterOrEqual(t, free, int64(spare))
}

// A program that filled the disk does not get the space that is released, unless it keeps trying.
func TestReserve_givesBallastUpPieceByPiece(t *testing.T) {
	t.Parallel()
	dir := disktest.Mount(t, "384m")
	r, _ := etcdOn(t, dir)
	require.NoError(t, r.hold())
	snap := filepath.Join(r.dir, "snap", "1.snap")
	small := func() error { return os.WriteFile(snap, make([]byte, 64<<10), 0o600) }
	for left := int64(handout); left > 0; left -= piece {
		full := disktest.Fill(t, dir)
		require.ErrorIs(t, small(), syscall.ENOSPC)
		require.NoError(t, os.Remove(snap))
		require.NoError(t, r.hold())
		require.NoError(t, r.hold(), "one piece at a time")
		require.NoError(t, small())
		size, allocated := blocks(t, filepath.Join(r.dir, "handout"))
		require.Equal(t, left-piece, size)
		require.Equal(t, left-piece, allocated)
		require.NoError(t, os.Remove(snap))
		if left == piece {
			require.NoError(t, os.Remove(full))
		}
	}
	require.NoError(t, r.hold())
	size, _ := blocks(t, filepath.Join(r.dir, "handout"))
	require.Equal(t, int64(handout), size, "with the room it comes back")
}

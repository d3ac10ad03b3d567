package embedded

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/kcp/embedded/disk"
	"github.com/faroshq/kedge-hub/pkg/log"
)

const (
	// ahead is how far etcd's database can grow into blocks that are allocated already.
	// The hub refuses writes long before these are used up.
	ahead = 64 << 20
	// least is how much of ahead must be left for a write.
	least = 16 << 20
	// segment is the size of a file of etcd's write-ahead log, 64 MB, and what etcd writes
	// past its end: it checks whether a file is full after it has written.
	segment = 68 << 20
	// spare is left to other programs.
	spare = 16 << 20
	// handout is the size of a ballast file. It is given up piece by piece when the disk
	// is full, because etcd creates small files whose names cannot be known before.
	handout, piece = 8 << 20, 1 << 20
	// refillEvery is how often the reserve is filled up. Meanwhile etcd writes much less
	// than ahead.
	refillEvery = time.Second
)

// reserve allocates the blocks that etcd will write next. etcd ends the whole process at
// the first write for which the disk has no room, and another program can fill the disk
// between any two measurements of it, so a check before a write is not enough.
//
// A ballast file that is removed when the disk is nearly full is not enough either: the file of
// 128 MiB, with a look every 100 ms, did not keep etcd from ending the process in 13 of 20 rounds
// on a tmpfs of 512 MB that another program filled at full speed, in 10 of 10 on ext4, and in 10
// of 10 at 100 MB/s, where that program takes the ballast, too. With the reserve it was 0 of 10
// on a tmpfs and 0 of 10 on ext4.
type reserve struct {
	// dir is etcd's directory "member".
	dir string
	// db is the database file, whose blocks are allocated up to end. segments are the log
	// files whose blocks are allocated, by name.
	db       os.FileInfo
	end      int64
	segments map[string]os.FileInfo
	// held is told whether the space that etcd needs next is allocated; nil if nobody is.
	held func(bool)
}

func newReserve(etcd string) *reserve { return &reserve{dir: filepath.Join(etcd, "member")} }

// next are the two names under which etcd prepares the next log file, in turn. etcd does
// not retry after it could not create one, and ends when it needs it. It uses a file that
// exists under the name, so both are kept there: the one that is prepared and the one
// after.
func next() [2]string { return [2]string{"0.tmp", "1.tmp"} }

// ready prepares the files for the start of etcd, which begins with the first name. It is
// called before etcd starts. maintain reports errors.
func (r *reserve) ready() {
	names := next()
	first, second := filepath.Join(r.dir, "wal", names[0]), filepath.Join(r.dir, "wal", names[1])
	if _, err := os.Lstat(first); errors.Is(err, fs.ErrNotExist) {
		_ = os.Rename(second, first)
	}
	_ = r.hold()
	// At its start etcd truncates the log behind the last entry, so blocks are allocated
	// again.
	r.segments = nil
}

// maintain fills the reserve up until ctx ends. It is called after etcd has started, because
// etcd frees blocks at its start and takes them again a moment later.
func (r *reserve) maintain(ctx context.Context) {
	ticker := time.NewTicker(refillEvery)
	defer ticker.Stop()
	warned := false
	for {
		err := r.hold()
		if r.held != nil {
			r.held(r.suffices())
		}
		if err != nil && !warned {
			log.From(ctx).Warn("cannot reserve disk space for etcd, which ends the process when the disk is full", zap.Error(err))
			warned = true
		}
		if errors.Is(err, errors.ErrUnsupported) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// hold allocates what the reserve lacks, as far as there is room. Files that etcd has not
// created yet need nothing.
func (r *reserve) hold() error {
	err := r.holdDB()
	if err == nil {
		err = r.holdLog()
	}
	if err == nil {
		err = r.holdHandout()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// suffices reports whether the blocks that etcd needs next are allocated: some behind the end of its
// database, and a next log file.
func (r *reserve) suffices() bool {
	info, err := os.Stat(filepath.Join(r.dir, "snap", "db"))
	if err != nil || !os.SameFile(r.db, info) || r.end-info.Size() < least {
		return false
	}
	names := next()
	return r.segments[names[0]] != nil || r.segments[names[1]] != nil
}

// holdDB allocates the holes of the database file and the blocks behind its end, where it
// grows next.
func (r *reserve) holdDB() error {
	f, err := os.OpenFile(filepath.Join(r.dir, "snap", "db"), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(r.db, info) {
		r.db, r.end = info, 0
	}
	n, err := r.room(info.Size() + ahead - r.end)
	if err != nil || n <= 0 {
		return err
	}
	if err := disk.Allocate(f, r.end, n); err != nil {
		return err
	}
	r.end += n
	return nil
}

// holdLog allocates the log file that etcd writes to and the next ones.
func (r *reserve) holdLog() error {
	files, err := os.ReadDir(filepath.Join(r.dir, "wal"))
	if err != nil {
		return err
	}
	held := map[string]os.FileInfo{}
	defer func() { r.segments = held }()
	for i := len(files) - 1; i >= 0; i-- {
		// The directory is sorted by name, so the last log file is the newest.
		if name := files[i].Name(); filepath.Ext(name) == ".wal" {
			if err := r.holdSegment(held, name, os.O_WRONLY); err != nil {
				return err
			}
			break
		}
	}
	for _, name := range next() {
		if err := r.holdSegment(held, name, os.O_WRONLY|os.O_CREATE); err != nil {
			return err
		}
	}
	return nil
}

// holdSegment allocates the blocks of a log file behind its size, and adds it to held if it
// has all of them. etcd has allocated those within the size.
func (r *reserve) holdSegment(held map[string]os.FileInfo, name string, flag int) error {
	f, err := os.OpenFile(filepath.Join(r.dir, "wal", name), flag, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if lacks := segment - info.Size(); lacks > 0 && !os.SameFile(r.segments[name], info) {
		if n, err := r.room(lacks); err != nil || n < lacks {
			return err
		}
		if err := disk.Allocate(f, info.Size(), lacks); err != nil {
			return err
		}
	}
	held[name] = info
	return nil
}

// holdHandout keeps the ballast file, and makes it smaller when the disk is full.
func (r *reserve) holdHandout() error {
	f, err := os.OpenFile(filepath.Join(r.dir, "handout"), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	free, err := disk.Free(r.dir)
	switch size := info.Size(); {
	case err != nil:
		return err
	case size > 0 && free < piece/2:
		return f.Truncate(size - piece)
	case size < handout && free >= spare+handout:
		if err := disk.Allocate(f, 0, handout); err != nil {
			return err
		}
		return f.Truncate(handout)
	}
	return nil
}

// room returns how much of n the disk has room for. An attempt to allocate more would take
// all free blocks for a moment, also from etcd.
func (r *reserve) room(n int64) (int64, error) {
	if n <= 0 {
		return 0, nil
	}
	free, err := disk.Free(r.dir)
	return min(n, max(free-spare, 0)), err
}

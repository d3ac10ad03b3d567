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
	// ahead is how much etcd's database can grow before it needs the disk. The hub
	// takes no more writes long before it is used up.
	ahead = 64 << 20
	// segment is the size of a file of etcd's write-ahead log, 64 MB, and what etcd
	// writes past its end: it looks whether a file is full after it has written.
	segment = 68 << 20
	// spare is left to others.
	spare = 16 << 20
	// handout is given up, a piece at a time, when there is nothing else: now and then
	// etcd makes a small file whose name nobody can know.
	handout, piece = 8 << 20, 1 << 20
	// holdingEvery is how often the reserve is looked after. Between two looks etcd writes
	// much less than ahead.
	holdingEvery = time.Second
)

// reserve is the blocks that etcd needs next, allocated before it needs them: etcd
// ends the whole process at the first write for which there is no room, and whatever
// else writes to the disk can fill it between any two looks at it.
type reserve struct {
	// dir is etcd's folder "member".
	dir string
	// db is the database that has blocks up to end, and segments the files of the log
	// that have theirs, by name.
	db       os.FileInfo
	end      int64
	segments map[string]os.FileInfo
}

func newReserve(etcd string) *reserve { return &reserve{dir: filepath.Join(etcd, "member")} }

// next are the names, in turn, of the file that etcd makes ready for when that of the
// log which it writes to is full. It never tries again where it could not make one,
// and ends when it needs it. What it finds under the name it takes, so both names are
// kept there: the one in its hands, and the one after.
func next() [2]string { return [2]string{"0.tmp", "1.tmp"} }

// ready is to be called before etcd starts, which begins with the first name. What
// fails here, keep tells of.
func (r *reserve) ready() {
	names := next()
	first, second := filepath.Join(r.dir, "wal", names[0]), filepath.Join(r.dir, "wal", names[1])
	if _, err := os.Lstat(first); errors.Is(err, fs.ErrNotExist) {
		_ = os.Rename(second, first)
	}
	_ = r.hold()
	// etcd cuts off behind what it reads of the log.
	r.segments = nil
}

// keep holds the reserve until ctx ends. It is not to be called before etcd has
// started, which frees blocks then that it takes again a moment later.
func (r *reserve) keep(ctx context.Context) {
	ticker := time.NewTicker(holdingEvery)
	defer ticker.Stop()
	told := false
	for {
		err := r.hold()
		if err != nil && !told {
			log.From(ctx).Warn("no blocks of the disk can be set aside for etcd, which ends where there are none", zap.Error(err))
			told = true
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

// hold allocates what the reserve lacks, as far as there is room. What etcd has not
// made yet needs none.
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

// holdDB fills the holes of the database, which grows by them, and sets blocks aside
// behind its end, where it grows next.
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

// holdLog sets aside what is written of the log at present, and what comes next.
func (r *reserve) holdLog() error {
	files, err := os.ReadDir(filepath.Join(r.dir, "wal"))
	if err != nil {
		return err
	}
	held := map[string]os.FileInfo{}
	defer func() { r.segments = held }()
	for i := len(files) - 1; i >= 0; i-- {
		// They are in order, those of the log by age.
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

// holdSegment puts the file into held if it has its blocks. Those within its size etcd
// has allocated.
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

// holdHandout keeps a file that is of no use but that it can be made smaller.
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

// room is how much of n there is room for. To try with more would take everything for
// a moment, from etcd too.
func (r *reserve) room(n int64) (int64, error) {
	if n <= 0 {
		return 0, nil
	}
	free, err := disk.Free(r.dir)
	return min(n, max(free-spare, 0)), err
}

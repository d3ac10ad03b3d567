package disk

import (
	"errors"
	"os"
	"syscall"
)

// keepSize is FALLOC_FL_KEEP_SIZE: allocate blocks without changing the file's size.
const keepSize = 1

// Free returns how many bytes can still be written, by users other than root, to the file
// system of dir.
func Free(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:gosec,unconvert // a disk is smaller; its blocks' size is another type elsewhere
}

// Allocate allocates the blocks of n bytes of a file from offset on, also past its end. The
// size and content of the file do not change. A file system that cannot do that returns
// errors.ErrUnsupported.
func Allocate(f *os.File, offset, n int64) error {
	for {
		err := syscall.Fallocate(int(f.Fd()), keepSize, offset, n)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

package disk

import (
	"errors"
	"os"
	"syscall"
)

// keepSize is FALLOC_FL_KEEP_SIZE: the blocks are the file's, its size stays.
const keepSize = 1

// Free is how many bytes others than root can still write where dir is.
func Free(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:gosec,unconvert // a disk is smaller; its blocks' size is another type elsewhere
}

// Allocate gives a file the blocks of its bytes from offset on, n of them, whether or
// not it is that long; its size and what it holds do not change. Where the file system
// cannot do that the error is an errors.ErrUnsupported.
func Allocate(f *os.File, offset, n int64) error {
	for {
		err := syscall.Fallocate(int(f.Fd()), keepSize, offset, n)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

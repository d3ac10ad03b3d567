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
	free, _, err := Usage(dir)
	return free, err
}

// Usage returns what Free returns, and the size of the file system in bytes.
func Usage(dir string) (free, size int64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	block := int64(s.Bsize)                                      //nolint:unconvert // another type elsewhere
	return int64(s.Bavail) * block, int64(s.Blocks) * block, nil //nolint:gosec // a disk is smaller
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

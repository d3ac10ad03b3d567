package backup

import (
	"os"

	"golang.org/x/sys/unix"
)

// writeOut has n bytes of a file from begin on written to the disk, and waits for that. Unlike a sync it leaves the journal
// of the file system alone, on which the syncs of etcd wait. Where it cannot be done, a sync is.
func writeOut(f *os.File, begin, n int64) error {
	const all = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	if unix.SyncFileRange(int(f.Fd()), begin, n, all) == nil {
		return nil
	}
	return f.Sync()
}

package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const lockFile = "lock"

// databaseFile is the database of etcd in the folder of kcp. etcd locks it.
const databaseFile = etcdDir + "/member/snap/db"

// lock locks the directory for this process. The lock ends with the process in every
// case, so nothing has to be cleaned up after a crash.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data folder of kcp: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = fmt.Errorf("--data-dir: another hub works with %s; stop it, or give this one a directory of its own", dir)
	case err != nil:
		err = fmt.Errorf("lock the data folder of kcp: %w", err)
	default:
		// A start makes other certificates than those that an etcd of its own has read.
		if err = unlocked(dir, databaseFile, "an etcd"); err == nil {
			return f, nil
		}
		err = fmt.Errorf("--data-dir: %w", err)
	}
	_ = f.Close()
	return nil, err
}

// unused returns an error if a process works with the data in dir: a hub with its embedded kcp, or an etcd.
func unused(dir string) error {
	if err := unlocked(dir, lockFile, "a hub"); err != nil {
		return err
	}
	return unlocked(dir, databaseFile, "an etcd")
}

// unlocked returns an error if a process has locked a file in dir. The file need not be there.
func unlocked(dir, file, by string) error {
	f, err := os.Open(filepath.Join(dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	// The lock ends when the file is closed.
	err = errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), f.Close())
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("%s works with %s; stop it first", by, dir)
	}
	return err
}

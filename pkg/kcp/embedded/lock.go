package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const lockFile = "lock"

// lock locks the directory for this process. The lock ends with the process in every
// case, so nothing has to be cleaned up after a crash.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data folder of kcp: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("--data-dir: another hub works with %s; stop it, or give this one a directory of its own", dir)
	}
	return nil, fmt.Errorf("lock the data folder of kcp: %w", err)
}

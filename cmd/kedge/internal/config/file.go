package config

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// lockPoll is the interval at which a lock that another process has is tried again.
const lockPoll = 20 * time.Millisecond

// Lock waits for the lock of a file, which is a file beside it with the suffix .lock. The lock
// ends with the process at the latest; the lock file stays.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	path += ".lock"
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		locked, err := tryLock(f)
		switch {
		case err != nil:
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		case locked:
			return func() { _ = f.Close() }, nil
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("wait for another kedge to release %s: %w", path, context.Cause(ctx))
		case <-time.After(lockPoll):
		}
	}
}

// WriteFile replaces a file atomically, with mode 0600. If path is a symbolic link, it replaces
// the file that the link names.
func WriteFile(path string, content []byte) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".kedge-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}

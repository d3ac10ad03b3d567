// Package durable writes files that a kill or a loss of power leaves as they were or as they are to be.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Replace writes a file, which gets its name when it is whole and on the disk. Where that fails, the file of before stays.
// Two calls for one file must not run at once.
func Replace(name string, content []byte, mode fs.FileMode) error {
	next := name + ".new"
	// What a kill has left, whatever it is.
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err == nil {
		err = os.Rename(next, name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(next))
	}
	return Sync(filepath.Dir(name))
}

// Sync has a file, or the names in a folder, written to the disk.
func Sync(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		// Some file systems cannot do that with a folder.
		err = nil
	}
	return errors.Join(err, f.Close())
}

package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/faroshq/kedge-hub/pkg/durable"
)

// lostFound is what the root of a new volume has.
const lostFound = "lost+found"

// Whole returns an error if a restore into a data folder was interrupted.
func Whole(dir string) error {
	switch _, err := os.Lstat(filepath.Join(dir, Partial)); {
	case err == nil:
		return fmt.Errorf("a restore into %s was interrupted; remove all that is in it, and restore again", dir)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	default:
		return err
	}
}

// folder is a data folder that is filled.
type folder struct {
	dir string
	// made is true if there was no folder.
	made   bool
	locked *os.File
	// moved are the entries that are in their place.
	moved []string
}

// begin makes the folder with an empty Partial in it. It refuses a folder that has anything.
func begin(dir string) (f *folder, err error) {
	f = &folder{dir: dir}
	switch err := os.Mkdir(dir, 0o700); {
	case err == nil:
		f.made = true
	case !errors.Is(err, fs.ErrExist):
		return nil, err
	}
	if f.locked, err = os.Open(dir); err != nil {
		return nil, err
	}
	// The lock ends with the process.
	if err := syscall.Flock(int(f.locked.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("another restore fills %s: %w", dir, err), f.locked.Close())
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, errors.Join(err, f.locked.Close())
	}
	partial := filepath.Join(dir, Partial)
	for _, e := range entries {
		if e.Name() != Partial && e.Name() != lostFound {
			return nil, errors.Join(fmt.Errorf("%s is not empty: it has %s; a backup is restored into an empty folder", dir, e.Name()), f.locked.Close())
		}
	}
	// A restore that was killed left no more than this.
	if err := errors.Join(os.RemoveAll(partial), os.Mkdir(partial, 0o700)); err != nil {
		return nil, errors.Join(err, f.end(false))
	}
	return f, nil
}

// fill moves all that is in Partial to its place. All of it is on the disk before.
func (f *folder) fill() error {
	partial := filepath.Join(f.dir, Partial)
	if err := filepath.WalkDir(partial, func(name string, _ fs.DirEntry, err error) error {
		return errors.Join(err, durable.Sync(name))
	}); err != nil {
		return err
	}
	entries, err := os.ReadDir(partial)
	if err != nil {
		return err
	}
	for _, e := range entries {
		to := filepath.Join(f.dir, e.Name())
		if err := os.Rename(filepath.Join(partial, e.Name()), to); err != nil {
			return err
		}
		f.moved = append(f.moved, to)
	}
	return durable.Sync(f.dir)
}

// end removes Partial, and unless the folder is filled, all that was made.
func (f *folder) end(filled bool) (err error) {
	if !filled {
		// What was moved goes first: while Partial is there the hub does not start.
		for _, name := range slices.Backward(f.moved) {
			err = errors.Join(err, os.RemoveAll(name))
		}
	}
	if err == nil {
		err = os.RemoveAll(filepath.Join(f.dir, Partial))
	}
	switch {
	case err != nil:
	case filled:
		err = durable.Sync(f.dir)
	case f.made:
		err = os.Remove(f.dir)
	}
	return errors.Join(err, f.locked.Close())
}

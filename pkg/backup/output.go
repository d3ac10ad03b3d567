package backup

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/faroshq/kedge-hub/pkg/durable"
)

const (
	// nameForm is the form of the names of backups in a folder. Its texts have the order of the times.
	nameForm = "kedge-hub-2006-01-02T15-04-05Z"
	// extension is that of a compressed tar, and encryptedExtension follows it where that is encrypted.
	extension, encryptedExtension = ".tar.gz", ".age"
)

// NameAt is the name of a backup in a folder of backups.
func NameAt(t time.Time, encrypted bool) string {
	name := t.UTC().Format(nameForm) + extension
	if encrypted {
		name += encryptedExtension
	}
	return name
}

// writeOutEvery is the number of bytes after which a file is written out while it grows. A disk that gets all of a large
// file at its end makes each write of etcd wait for seconds.
const writeOutEvery = 1 << 20

// writtenOut writes a file out to the disk now and then.
type writtenOut struct {
	to           *os.File
	begin, bytes int64
}

// Write implements io.Writer.
func (w *writtenOut) Write(raw []byte) (int, error) {
	n, err := w.to.Write(raw)
	if w.bytes += int64(n); err == nil && w.bytes >= writeOutEvery {
		err = writeOut(w.to, w.begin, w.bytes)
		w.begin, w.bytes = w.begin+w.bytes, 0
	}
	return n, err
}

// timeOf returns the time in a name that NameAt made. It is zero for every other one.
func timeOf(name string) time.Time {
	plain, encrypted := strings.CutSuffix(name, encryptedExtension)
	t, err := time.Parse(nameForm, strings.TrimSuffix(plain, extension))
	if err != nil || NameAt(t, encrypted) != name {
		return time.Time{}
	}
	return t
}

// partPrefix begins the name of a file that is not whole yet. The process that writes it has locked it.
const partPrefix = ".kedge-hub-backup-"

// newPart makes a file in dir and locks it. Where the file system has no locks, it is not locked, and no part is ever removed.
func newPart(dir string) (*os.File, error) {
	for {
		f, err := os.CreateTemp(dir, partPrefix+"*")
		if err != nil || syscall.Flock(int(f.Fd()), syscall.LOCK_EX) != nil {
			return f, err
		}
		// Before it was locked, another process may have taken it for one that was left, and removed it.
		_, err = os.Lstat(f.Name())
		if err == nil {
			return f, nil
		}
		if _ = f.Close(); !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
}

// removeParts removes from dir what processes that were killed have left. What it cannot remove takes room and nothing
// else, so it is no error.
func removeParts(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), partPrefix) || !e.Type().IsRegular() {
			continue
		}
		f, err := os.OpenFile(filepath.Join(dir, e.Name()), os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.Remove(f.Name())
		}
		_ = f.Close()
	}
}

// Replace writes a file under a name that it gets when it is whole and on the disk. Only its user can read it. It removes
// from the folder what a Replace that was killed has left.
func Replace(name string, write func(io.Writer) error) (err error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", name)
	}
	removeParts(filepath.Dir(name))
	f, err := newPart(filepath.Dir(name))
	if err != nil {
		return err
	}
	// The lock ends with the file, so that is closed when it has its name.
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := errors.Join(write(&writtenOut{to: f}), f.Sync()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return durable.Sync(filepath.Dir(name))
}

// Prune removes backups from a folder, the oldest by their names first, until keep are left. That of the name made stays
// at any rate: the clock of its name may have been set back. Files with names that NameAt does not make stay.
func Prune(dir string, keep int, made string) (removed []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return e.Name() == made || timeOf(e.Name()).IsZero() || !e.Type().IsRegular()
	})
	slices.SortFunc(entries, func(a, b fs.DirEntry) int {
		return cmp.Or(timeOf(b.Name()).Compare(timeOf(a.Name())), cmp.Compare(a.Name(), b.Name()))
	})
	for _, e := range entries[min(len(entries), max(keep-1, 0)):] {
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return removed, err
		}
		removed = append(removed, e.Name())
	}
	return removed, nil
}

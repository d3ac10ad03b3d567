package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// rotatedAt is the form of the time in the name of a file that was put away.
const rotatedAt = "2006-01-02T15-04-05.000"

// file appends to a file, and puts it away when it is full.
type file struct {
	path    string
	options Options
	to      *os.File
	size    int64
}

func openFile(path string, o Options) (*file, error) {
	f := &file{path: path, options: o}
	return f, f.open()
}

func (f *file) open() (err error) {
	if f.to, err = os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	info, err := f.to.Stat()
	if err != nil {
		return errors.Join(err, f.to.Close())
	}
	f.size = info.Size()
	return nil
}

func (f *file) Write(p []byte) (int, error) {
	n, err := f.to.Write(p)
	f.size += int64(n)
	return n, err
}

// full reports whether the file is put away before the next event.
func (f *file) full() bool {
	return f.size > 0 && f.size >= int64(f.options.MaxSize)<<20
}

// rotate puts the file away, begins a new one, and removes the oldest. It returns nil if the file cannot be put
// away; it then goes on.
func (f *file) rotate(now time.Time) (*Rotation, error) {
	ext := filepath.Ext(f.path)
	base := strings.TrimSuffix(f.path, ext)
	away := ""
	for {
		away = base + "-" + now.UTC().Format(rotatedAt) + ext
		if _, err := os.Lstat(away); err != nil {
			break
		}
		now = now.Add(time.Millisecond)
	}
	if err := os.Rename(f.path, away); err != nil {
		return nil, err
	}
	before := f.to
	if err := f.open(); err != nil {
		// Events go on into the file that was put away, rather than nowhere.
		f.to = before
		return nil, errors.Join(err, os.Rename(away, f.path))
	}
	_ = before.Close()
	rotation := &Rotation{File: filepath.Base(away)}
	kept, removed := f.prune(now)
	for _, name := range removed {
		rotation.Removed = append(rotation.Removed, filepath.Base(name))
	}
	if len(kept) > 0 {
		rotation.First = FirstSeq(kept[len(kept)-1])
	}
	return rotation, nil
}

// prune removes the files that are too many or too old. It returns the others, the newest first.
func (f *file) prune(now time.Time) (kept, removed []string) {
	all, err := putAway(f.path)
	if err != nil {
		return nil, nil
	}
	for i, name := range all {
		old := f.options.MaxAge > 0 && timeOf(f.path, name).Before(now.AddDate(0, 0, -f.options.MaxAge))
		if (old || f.options.MaxBackups > 0 && i >= f.options.MaxBackups) && os.Remove(name) == nil {
			removed = append(removed, name)
		} else {
			kept = append(kept, name)
		}
	}
	return kept, removed
}

// putAway returns the files that path was renamed to, the newest first.
func putAway(path string) ([]string, error) {
	ext := filepath.Ext(path)
	found, err := filepath.Glob(escaped(strings.TrimSuffix(path, ext)+"-") + "*" + escaped(ext))
	if err != nil {
		return nil, err
	}
	// Other files in the directory can have such names, too.
	found = slices.DeleteFunc(found, func(name string) bool { return timeOf(path, name).IsZero() })
	slices.Sort(found)
	slices.Reverse(found)
	return found, nil
}

// timeOf returns when path was put away as name. It is zero if the name is another one.
func timeOf(path, name string) time.Time {
	ext := filepath.Ext(path)
	at, err := time.Parse(rotatedAt, strings.TrimSuffix(strings.TrimPrefix(name, strings.TrimSuffix(path, ext)+"-"), ext))
	if err != nil {
		return time.Time{}
	}
	return at
}

// escaped is a path without special characters for filepath.Glob.
func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// Files returns the files of the chain in path, the oldest first.
func Files(path string) ([]string, error) {
	files, err := putAway(path)
	if err != nil {
		return nil, err
	}
	slices.Reverse(files)
	if _, err := os.Stat(path); err == nil {
		files = append(files, path)
	} else if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return files, nil
}

// FirstSeq is the place in its chain of the first event in a file. It is zero if there is none.
func FirstSeq(name string) (seq uint64) {
	_ = Lines(name, 0, func(l Line) bool {
		seq = l.Event.Seq
		return seq == 0
	})
	return seq
}

// lastOf returns the last event in the files of a chain, and whether the last line of its file has no end.
func lastOf(path, name string) (last Line, torn bool, err error) {
	files, err := Files(path)
	if err != nil {
		return last, false, err
	}
	for _, f := range slices.Backward(files) {
		if err := Lines(f, 0, func(l Line) bool {
			if l.OK && l.Event.Log == name && l.Event.Replica != "" {
				last = l
			}
			torn = torn || f == path && !l.Whole
			return true
		}); err != nil {
			return last, torn, fmt.Errorf("read %s: %w", f, err)
		}
		if last.OK {
			break
		}
	}
	return last, torn, nil
}

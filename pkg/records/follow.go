package records

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/faroshq/kedge-hub/pkg/audit"
)

const (
	// maxBatch is the number of events that one transaction stores, and maxBatchBytes that of the bytes of
	// their lines after which no further one is added.
	maxBatch      = 500
	maxBatchBytes = 1 << 20
)

// record is an event with its line.
type record struct {
	audit.Line
	text string
}

// source is an open file of a chain. It stays readable after it was put away or removed.
type source interface {
	io.ReaderAt
	io.Closer
	Stat() (os.FileInfo, error)
}

// follower reads the files of a chain from a place in the chain on, over rotations.
type follower struct {
	path, log string
	// position is that of the last event that was read. joins is true until an event was read that follows the one that the
	// database has.
	position
	joins bool
	// file is nil before the first event. first is the number of the first event in it, offset is behind what was read of
	// it, and left says that the log goes on in a later file.
	file   source
	first  uint64
	offset int64
	left   bool
}

func (f *follower) close() {
	if f.file != nil {
		_ = f.file.Close()
		f.file = nil
	}
}

// next returns up to limit events that follow, in their order, or none if there are none at the moment. lost counts
// those that were removed before they were read.
func (f *follower) next(limit int) (batch []record, lost uint64, err error) {
	for {
		// Between a read to the end of a file and a look at what follows it, the log can append to it and put it away. So
		// the look comes first.
		if err := f.look(); err != nil {
			return nil, 0, err
		}
		if batch, lost, err = f.read(limit); err != nil || len(batch) > 0 || !f.left {
			return batch, lost, err
		}
		if moved, err := f.advance(); err != nil || !moved {
			return nil, 0, err
		}
	}
}

// look notes whether the log has left the file.
func (f *follower) look() error {
	if f.left {
		return nil
	}
	if f.file != nil {
		here, err := f.file.Stat()
		if err != nil {
			return err
		}
		if newest, err := os.Stat(f.path); err == nil && os.SameFile(here, newest) {
			return nil
		}
	}
	later, err := f.later()
	f.left = len(later) > 0
	return err
}

// read returns up to limit events of the file.
func (f *follower) read(limit int) (batch []record, lost uint64, err error) {
	if f.file == nil {
		return nil, 0, nil
	}
	size := 0
	var forked error
	err = audit.LinesIn(f.file, f.offset, func(l audit.Line) bool {
		if !l.Whole && !l.OK {
			return false
		}
		// An event that lacks nothing but the end of its line is in the chain.
		f.offset = l.End
		if !l.OK || l.Event.Log != f.log || l.Event.Seq <= f.seq {
			return true
		}
		if f.joins && l.Event.Seq == f.seq+1 && l.Event.Prev != f.hash {
			forked = fmt.Errorf("event %d of %s does not follow the one before it in the database: %w", l.Event.Seq, f.log, errForked)
			return false
		}
		f.joins = false
		if f.seq > 0 {
			lost += l.Event.Seq - f.seq - 1
		}
		batch = append(batch, record{l, string(l.Text)})
		f.seq, f.hash = l.Event.Seq, l.Hash
		size += len(l.Text)
		return len(batch) < limit && size < maxBatchBytes
	})
	return batch, lost, errors.Join(err, forked)
}

// advance goes on to the file with the event behind seq, or else to the next one that is there.
func (f *follower) advance() (moved bool, err error) {
	for {
		later, err := f.later()
		if err != nil || len(later) == 0 {
			return false, err
		}
		next := later[0]
		for _, p := range later[1:] {
			if p.first <= f.seq+1 {
				next = p
			}
		}
		file, err := os.Open(next.name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		if first, err := f.firstIn(file); err != nil || first != next.first {
			// It was put away in this moment, and the name is that of another one.
			if err := errors.Join(err, file.Close()); err != nil {
				return false, err
			}
			continue
		}
		f.close()
		f.file, f.first, f.offset, f.left = file, next.first, 0, false
		return true, nil
	}
}

// part is a file of a chain with the number of its first event.
type part struct {
	name  string
	first uint64
}

// later returns the files with events behind those of the open one, in their order. It has each file that was left before.
func (f *follower) later() (later []part, err error) {
	add := func(name string) error {
		file, err := os.Open(name)
		if errors.Is(err, os.ErrNotExist) {
			// It was put away or removed in this moment.
			return nil
		}
		if err != nil {
			return err
		}
		first, err := f.firstIn(file)
		if first > f.first {
			later = append(later, part{name, first})
		}
		return errors.Join(err, file.Close())
	}
	// If the list came first, a file that is put away after it would be nowhere.
	if err := add(f.path); err != nil {
		return nil, err
	}
	names, err := audit.Files(f.path)
	for _, name := range names {
		if name != f.path {
			err = errors.Join(err, add(name))
		}
	}
	slices.SortFunc(later, func(a, b part) int { return cmp.Compare(a.first, b.first) })
	return later, err
}

// firstIn returns the number of the first event of the chain in a file, or 0.
func (f *follower) firstIn(file io.ReaderAt) (first uint64, err error) {
	err = audit.LinesIn(file, 0, func(l audit.Line) bool {
		if l.OK && l.Event.Log == f.log {
			first = l.Event.Seq
		}
		return first == 0
	})
	return first, err
}

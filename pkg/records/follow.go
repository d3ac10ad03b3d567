package records

import (
	"errors"
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

// follower reads the files of a chain from a place in the chain on, over rotations. A file that is open stays
// readable after it was removed.
type follower struct {
	path, log string
	// seq is the last event that was read, and hash that of its line.
	seq    uint64
	hash   string
	file   *os.File
	offset int64
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
		if f.file == nil {
			if err := f.open(); err != nil || f.file == nil {
				return nil, 0, err
			}
		}
		size := 0
		err := audit.LinesIn(f.file, f.offset, func(l audit.Line) bool {
			if !l.Whole {
				return false
			}
			f.offset = l.End
			if !l.OK || l.Event.Log != f.log || l.Event.Seq <= f.seq {
				return true
			}
			if f.seq > 0 {
				lost += l.Event.Seq - f.seq - 1
			}
			batch = append(batch, record{l, string(l.Text)})
			f.seq, f.hash = l.Event.Seq, l.Hash
			size += len(l.Text)
			return len(batch) < limit && size < maxBatchBytes
		})
		if err != nil || len(batch) > 0 {
			return batch, lost, err
		}
		if more, err := f.advance(); err != nil || !more {
			return nil, lost, err
		}
	}
}

// open opens the file that has the event behind seq, or the oldest one.
func (f *follower) open() error {
	files, err := audit.Files(f.path)
	if err != nil || len(files) == 0 {
		return err
	}
	name := files[0]
	for _, candidate := range files {
		if first := audit.FirstSeq(candidate); first > 0 && first <= f.seq+1 {
			name = candidate
		}
	}
	f.offset = 0
	f.file, err = os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		// It was put away or removed in this moment.
		f.file, err = nil, nil
	}
	return err
}

// advance goes on to the next file, if there is one.
func (f *follower) advance() (more bool, err error) {
	here, err := f.file.Stat()
	if err != nil {
		return false, err
	}
	files, err := audit.Files(f.path)
	if err != nil {
		return false, err
	}
	at := slices.IndexFunc(files, func(name string) bool {
		info, err := os.Stat(name)
		return err == nil && os.SameFile(here, info)
	})
	switch {
	case at >= 0 && at == len(files)-1, len(files) == 0:
		return false, nil
	case at < 0:
		// It was removed: the oldest that is left is next.
		f.close()
		return true, nil
	}
	next, err := os.Open(files[at+1])
	if err != nil {
		return false, err
	}
	f.close()
	f.file, f.offset = next, 0
	return true, nil
}

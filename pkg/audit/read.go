package audit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	// maxScanned is the number of bytes that one Read looks at.
	maxScanned = 16 << 20
	// chunk is the number of bytes that are read at once.
	chunk = 64 << 10
)

// ErrNotReadable is the error of Read for a log that is in no regular file of this process.
var ErrNotReadable = errors.New("the audit log is not in a file")

// ErrUnknownPosition is the error of Read for a position in a file that is not there any more, or
// in one of another replica.
var ErrUnknownPosition = errors.New("the position is in no file of this audit log")

// Query selects events of one Organization. Empty fields select all.
type Query struct {
	// Org is the UUID of the Organization.
	Org string
	// Since and Until limit the time: an event at Since is in the result, one at Until is not.
	Since, Until time.Time
	// Actor is the name of a User or the UUID of a bot. Workspace is a UUID.
	Actor, Workspace string
	// Action is a part of an action.
	Action string
	// Limit is the maximum number of events.
	Limit int
	// After is where the last Read ended. It is nil for the newest events.
	After *Position
}

// Position is a place in the files of each chain.
type Position struct{ Rights, Writes Place }

// Place is a place in the files of a chain. The zero Place is their beginning: nothing is left.
type Place struct {
	// File is the time of the first event in the file. It stays the same when the file is rotated.
	File string
	// Offset is the offset in bytes at which the last line that was looked at begins.
	Offset int64
}

// Read returns the events that q selects, the newest first. It looks at a limited number of bytes:
// there can be more events if next is not nil, also if it returns none. Calls take turns, so that
// tenants who read never keep more than one CPU busy.
func (l *Log) Read(ctx context.Context, q Query) (events []Event, next *Position, err error) {
	if len(l.Paths()) == 0 {
		return nil, nil, ErrNotReadable
	}
	select {
	case l.reading <- struct{}{}:
		defer func() { <-l.reading }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	from := [2]*Place{}
	if q.After != nil {
		from = [2]*Place{&q.After.Rights, &q.After.Writes}
	}
	var found [2]found
	for i, c := range []*chain{l.rights, l.writes} {
		if found[i], err = l.search(ctx, c.file.path, q, from[i]); err != nil {
			return nil, nil, err
		}
	}
	return merge(found, q.Limit)
}

// found are the events of a chain, the newest first, with the place of each. The search began at start, and
// goes on at rest; a zero rest means that it is complete.
type found struct {
	events      []Event
	places      []Place
	start, rest Place
}

// after is where the next search goes on if n events were taken.
func (f found) after(n int) Place {
	switch n {
	case len(f.events):
		return f.rest
	case 0:
		return f.start
	}
	return f.places[n-1]
}

// merge returns the newest events of both chains. It ends where one of them was not searched further.
func merge(of [2]found, limit int) (events []Event, next *Position, err error) {
	var taken [2]int
	for len(events) < limit {
		newest, left := 0, false
		for i, f := range of {
			switch {
			case taken[i] == len(f.events) && f.rest != (Place{}):
				return events, &Position{of[0].after(taken[0]), of[1].after(taken[1])}, nil
			case taken[i] == len(f.events):
			case !left || f.events[taken[i]].Time.After(of[newest].events[taken[newest]].Time):
				newest, left = i, true
			}
		}
		if !left {
			return events, nil, nil
		}
		events = append(events, of[newest].events[taken[newest]])
		taken[newest]++
	}
	next = &Position{of[0].after(taken[0]), of[1].after(taken[1])}
	if *next == (Position{}) {
		next = nil
	}
	return events, next, nil
}

// search looks at the files of a chain. from is nil for the newest events.
func (l *Log) search(ctx context.Context, path string, q Query, from *Place) (result found, err error) {
	if from != nil && *from == (Place{}) {
		return found{}, nil
	}
	files, err := l.files(path)
	if err != nil {
		return found{}, err
	}
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	budget, end := int64(maxScanned), int64(-1)
	if from != nil {
		i := slices.IndexFunc(files, func(f *os.File) bool { return firstTime(f) == from.File })
		if i < 0 {
			return found{}, ErrUnknownPosition
		}
		files, end = files[i:], from.Offset
	}
	for _, f := range files {
		s := &scan{query: q, file: f, budget: budget, found: result}
		if end < 0 {
			if end, err = f.Seek(0, io.SeekEnd); err != nil {
				return found{}, err
			}
		}
		if s.found.start == (Place{}) {
			s.found.start = s.place(end)
		}
		more, err := s.run(ctx, end)
		if err != nil {
			return found{}, err
		}
		if result, budget, end = s.found, s.budget, -1; !more {
			break
		}
	}
	return result, nil
}

// files opens the file of a chain and those that were put away before, the newest first. The order is right
// because nothing is rotated meanwhile.
func (l *Log) files(path string) (files []*os.File, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	away, err := putAway(path)
	if err != nil {
		return nil, err
	}
	for _, name := range append([]string{path}, away...) {
		f, err := os.Open(name)
		switch {
		case errors.Is(err, os.ErrNotExist):
			// It was removed because of its age.
		case err != nil:
			for _, f := range files {
				_ = f.Close()
			}
			return nil, err
		default:
			files = append(files, f)
		}
	}
	return files, nil
}

// firstTime is the time of the first event in a file, or empty if it has none.
func firstTime(f *os.File) string {
	lines := bufio.NewReader(io.NewSectionReader(f, 0, maxLine))
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return ""
		}
		if e, ok := parse(line); ok {
			return e.Time.Format(time.RFC3339Nano)
		}
	}
}

// scan reads one file backwards.
type scan struct {
	query  Query
	file   *os.File
	budget int64
	found  found
	// first is the time of the first event of the file.
	first string
}

// run looks at the lines that end before end, or at all if end is negative. more is false if the
// result is complete or the budget is used up; found.rest then says where it goes on.
func (s *scan) run(ctx context.Context, end int64) (more bool, err error) {
	info, err := s.file.Stat()
	if err != nil {
		return false, err
	}
	if end < 0 || end > info.Size() {
		end = info.Size()
	}
	// rest is the begin of the lines in the chunks that were read: the end of a line whose begin is
	// in the chunk before.
	var rest []byte
	for at := end; at > 0; {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		size := min(chunk, at)
		at -= size
		read := make([]byte, size, size+int64(len(rest)))
		if _, err := s.file.ReadAt(read, at); err != nil {
			return false, err
		}
		s.budget -= size
		lines := append(read, rest...)
		for {
			i := bytes.LastIndexByte(bytes.TrimSuffix(lines, []byte("\n")), '\n')
			if i < 0 && at > 0 {
				break
			}
			if done := s.line(lines[i+1:], at+int64(i+1)); done || len(s.found.events) == s.query.Limit {
				return false, nil
			}
			if i < 0 {
				return true, nil
			}
			lines = lines[:i+1]
		}
		if rest = lines; len(rest) > maxLine {
			// No event is as long.
			rest = nil
		}
		if s.budget <= 0 {
			s.found.rest = s.place(at + int64(len(rest)))
			return false, nil
		}
	}
	return true, nil
}

// line looks at the line at an offset. done is true if all lines before it are too old.
func (s *scan) line(line []byte, at int64) (done bool) {
	// Most lines are about other Organizations.
	if !bytes.Contains(line, []byte(s.query.Org)) {
		return false
	}
	e, ok := parse(line)
	if !ok {
		return false
	}
	if e.Time.Before(s.query.Since) {
		return true
	}
	if !s.query.selects(e) {
		return false
	}
	place := s.place(at)
	s.found.events, s.found.places = append(s.found.events, e), append(s.found.places, place)
	if len(s.found.events) == s.query.Limit {
		s.found.rest = place
	}
	return false
}

// place is an offset in the file.
func (s *scan) place(at int64) Place {
	if s.first == "" {
		s.first = firstTime(s.file)
	}
	return Place{File: s.first, Offset: at}
}

func (q Query) selects(e Event) bool {
	return e.Org == q.Org && !e.Outsider &&
		(q.Until.IsZero() || e.Time.Before(q.Until)) &&
		(q.Actor == "" || q.Actor == e.Actor.User || q.Actor == e.Actor.Bot) &&
		(q.Workspace == "" || q.Workspace == e.Workspace) &&
		strings.Contains(e.Action, q.Action)
}

package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// maxScanned is the number of bytes that one Read looks at.
	maxScanned = 16 << 20
	// chunk is the number of bytes that are read at once.
	chunk = 64 << 10
	// rotatedAt is the form of the time in the name of a rotated file, as lumberjack has it.
	rotatedAt = "2006-01-02T15-04-05.000"
	// maxLine is the maximum length of a line that a reader takes for an event.
	maxLine = 256 << 10
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

// Position is a place in the log.
type Position struct {
	// File is the time of the first event in the file. It stays the same when the file is rotated.
	File string
	// Offset is the offset in bytes at which the last line that was looked at begins.
	Offset int64
}

// Read returns the events that q selects, the newest first. It looks at a limited number of bytes:
// there can be more events if next is not nil, also if it returns none. Calls take turns, so that
// tenants who read never keep more than one CPU busy.
func (l *Log) Read(ctx context.Context, q Query) (events []Event, next *Position, err error) {
	if l.file == "" {
		return nil, nil, ErrNotReadable
	}
	select {
	case l.reading <- struct{}{}:
		defer func() { <-l.reading }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	files, err := l.files()
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	budget, end := int64(maxScanned), int64(-1)
	if q.After != nil {
		i := slices.IndexFunc(files, func(f *os.File) bool { return firstTime(f) == q.After.File })
		if i < 0 {
			return nil, nil, ErrUnknownPosition
		}
		files, end = files[i:], q.After.Offset
	}
	for _, f := range files {
		s := &scan{query: q, file: f, budget: budget, events: events}
		more, err := s.run(ctx, end)
		if err != nil {
			return nil, nil, err
		}
		events, budget, end = s.events, s.budget, -1
		if !more {
			return events, s.next, nil
		}
	}
	return events, nil, nil
}

// files opens the file and its rotated predecessors, the newest first. The order is right because
// nothing is rotated meanwhile, and because the names of the rotated ones have the time.
func (l *Log) files() (files []*os.File, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ext := filepath.Ext(l.file)
	base := strings.TrimSuffix(l.file, ext) + "-"
	rotated, err := filepath.Glob(escaped(base) + "*" + escaped(ext))
	if err != nil {
		return nil, err
	}
	// Other files in the directory can have such names, too.
	rotated = slices.DeleteFunc(rotated, func(name string) bool {
		_, err := time.Parse(rotatedAt, strings.TrimSuffix(strings.TrimPrefix(name, base), ext))
		return err != nil
	})
	slices.Sort(rotated)
	slices.Reverse(rotated)
	for _, name := range append([]string{l.file}, rotated...) {
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

// escaped is a path without special characters for filepath.Glob.
func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
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

func parse(line []byte) (e Event, ok bool) {
	return e, json.Unmarshal(line, &e) == nil && e.APIVersion == APIVersion
}

// scan reads one file backwards.
type scan struct {
	query  Query
	file   *os.File
	budget int64
	events []Event
	next   *Position
}

// run looks at the lines that end before end, or at all if end is negative. more is false if the
// result is complete or the budget is used up; next then says where it goes on.
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
			if done := s.line(lines[i+1:], at+int64(i+1)); done || len(s.events) == s.query.Limit {
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
			s.position(at + int64(len(rest)))
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
	if s.events = append(s.events, e); len(s.events) == s.query.Limit {
		s.position(at)
	}
	return false
}

// position sets where the next Read goes on.
func (s *scan) position(at int64) {
	s.next = &Position{File: firstTime(s.file), Offset: at}
}

func (q Query) selects(e Event) bool {
	return e.Org == q.Org && !e.Outsider &&
		(q.Until.IsZero() || e.Time.Before(q.Until)) &&
		(q.Actor == "" || q.Actor == e.Actor.User || q.Actor == e.Actor.Bot) &&
		(q.Workspace == "" || q.Workspace == e.Workspace) &&
		strings.Contains(e.Action, q.Action)
}

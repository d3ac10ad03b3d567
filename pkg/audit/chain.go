package audit

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// The two chains of a replica.
const (
	// Rights has everything but what Writes has.
	Rights = "rights"
	// Writes has proxied requests, and what was refused or changed nothing: what tenants can write much of.
	Writes = "writes"
)

// Rotation says in the chain of a file what was put away and what was removed.
type Rotation struct {
	// File is the name under which the file was put away. Removed are the names of the older ones that
	// were removed.
	File    string   `json:"file"`
	Removed []string `json:"removed,omitempty"`
	// First is the Seq of the first event that is still in a file.
	First uint64 `json:"first"`
}

// chainOf is the chain to which an event belongs. What was refused before an intent, or changed nothing, says nothing of
// rights.
func chainOf(e Event) string {
	if strings.HasPrefix(e.Action, "kubernetes ") || strings.HasPrefix(e.Action, "refuse ") ||
		e.Action == countsUnchanged || e.Unchanged {
		return Writes
	}
	return Rights
}

// Head is the last event of a chain.
type Head struct {
	Replica string `json:"replica"`
	Log     string `json:"log"`
	Seq     uint64 `json:"seq"`
	Hash    string `json:"hash"`
}

// String is the form in which a head is recorded, and which ParseHead reads.
func (h Head) String() string {
	return fmt.Sprintf("%s:%s:%d:%s", h.Replica, h.Log, h.Seq, h.Hash)
}

// ParseHead reads a head that was recorded.
func ParseHead(text string) (h Head, err error) {
	parts := strings.Split(text, ":")
	if len(parts) == 4 {
		h.Replica, h.Log, h.Hash = parts[0], parts[1], parts[3]
		h.Seq, err = strconv.ParseUint(parts[2], 10, 64)
	}
	if err != nil || len(parts) != 4 || h.Log != Rights && h.Log != Writes {
		return Head{}, fmt.Errorf("%q is no head of a chain: REPLICA:LOG:SEQ:HASH", text)
	}
	return h, nil
}

// chain is where the events of a kind go.
type chain struct {
	head Head
	to   io.Writer
	// file is nil if to is no regular file.
	file *file
	// torn is true if the last line has no end.
	torn bool
	// lost is the number of events that could not be written since the last one.
	lost int
	// missed are the lost ones that did not wait for their turn, because the disk hangs. They are not among lost yet.
	missed atomic.Int64
	// mark keeps that there are any. Only Rights has one, and only in a regular file.
	mark *mark
	// rotation is what the chain does not say yet.
	rotation *Rotation
}

// count adds the events that did not wait to those that are lost.
func (c *chain) count() { c.lost += int(c.missed.Swap(0)) }

// write appends an event to the chain.
func (c *chain) write(e Event) error {
	e.APIVersion, e.Log, e.Replica = APIVersion, c.head.Log, c.head.Replica
	e.Seq, e.Prev, e.Lost = c.head.Seq+1, c.head.Hash, c.lost
	event, err := e.line(maxLine - len("\n"))
	if err != nil {
		return err
	}
	line := append(event, '\n')
	if c.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := c.to.Write(line)
	// An event whose end of line alone is missing is in the chain.
	if missing := len(line) - n; missing <= 1 {
		c.head.Seq, c.head.Hash, c.lost = e.Seq, Hash(event), 0
	} else {
		c.lost++
	}
	c.torn = n < len(line) && (n > 0 || c.torn)
	return err
}

// Hash is the hash of the line of an event, without its end.
func Hash(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}

// Line is a line of a file.
type Line struct {
	Event Event
	// Text is the line without its end. Hash is that of Text.
	Text []byte
	Hash string
	// OK is false if the line is no event. Whole is false if the line has no end.
	OK, Whole bool
	// End is the offset in bytes behind the line.
	End int64
}

const (
	// maxLine is the maximum length of a line that a reader takes for an event. No longer one is written.
	maxLine = 256 << 10
	// usualLine is room for some lines. A follower reads after each event, so a buffer for the longest one would be
	// most of the garbage of a hub.
	usualLine = 8 << 10
)

// Lines calls each for the lines of a file from an offset on, until it returns false. Text is valid during
// the call.
func Lines(name string, offset int64, each func(Line) bool) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return LinesIn(f, offset, each)
}

// LinesIn is Lines for an open file.
func LinesIn(f io.ReaderAt, offset int64, each func(Line) bool) error {
	lines := bufio.NewReaderSize(io.NewSectionReader(f, offset, math.MaxInt64-offset), usualLine)
	for {
		text, err := lines.ReadSlice('\n')
		size := int64(len(text))
		if errors.Is(err, bufio.ErrBufferFull) {
			text = slices.Clone(text)
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			var more []byte
			more, err = lines.ReadSlice('\n')
			size += int64(len(more))
			if size > maxLine {
				// No event is as long.
				text = nil
				continue
			}
			text = append(text, more...)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		offset += size
		l := Line{Whole: err == nil, End: offset}
		if size > 0 {
			if l.Whole && text != nil {
				text = text[:len(text)-1]
			}
			l.Text = text
			if l.Event, l.OK = parse(text); l.OK {
				l.Hash = Hash(text)
			}
			if !each(l) {
				return nil
			}
		}
		if err != nil {
			return nil
		}
	}
}

func parse(line []byte) (e Event, ok bool) {
	return e, json.Unmarshal(line, &e) == nil && e.APIVersion == APIVersion
}

package restore

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/faroshq/kedge-hub/pkg/audit"
)

// onItsWay is the age up to which a change that has no outcome may still be carried out. No request writes for as long.
const onItsWay = 10 * time.Minute

// End is where a chain ends: what happened later on that replica is not known.
type End struct {
	Replica string    `json:"replica"`
	Seq     uint64    `json:"seq"`
	Time    time.Time `json:"time"`
}

// History is what the chains of rights say about the time since a backup.
type History struct {
	// Events are the changes that the backup may not have: of each the outcome, or the intent where there is none.
	// Refused changes are left out.
	Events []audit.Event
	// Ends are the ends of the chains.
	Ends []End
	// Unknown says what is not known. It is empty for whole chains.
	Unknown []string
}

// chains reads the chains of an Order.
type chains struct {
	order Order
	heads map[string]audit.Head
	// reached has the heads that a file has.
	reached map[string]bool
	first   map[string]audit.Event
	last    map[string]audit.Event
	// asked are the intents, and answered the changes with an outcome. Files come in any order.
	asked    map[string]audit.Event
	answered map[string]bool
	// failed are the outcomes that say neither that a change was made nor that it was not.
	failed map[string]audit.Event
	events []audit.Event
	found  History
}

// ReadHistory reads the files of an Order. The error is that of a file that cannot be read; what is wrong with the
// chains is in History.Unknown.
func ReadHistory(o Order) (History, error) {
	c := &chains{
		order: o, heads: map[string]audit.Head{}, reached: map[string]bool{}, first: map[string]audit.Event{}, last: map[string]audit.Event{},
		asked: map[string]audit.Event{}, answered: map[string]bool{}, failed: map[string]audit.Event{},
	}
	verifier := audit.NewVerifier()
	var rights []audit.Head
	for _, h := range o.Heads {
		if h.Log == audit.Rights {
			rights = append(rights, h)
			c.heads[h.Replica] = h
		}
	}
	for _, file := range o.Files {
		if err := verifier.File(file); err != nil {
			return History{}, fmt.Errorf("read the audit log %s: %w", file, err)
		}
		if err := audit.Lines(file, 0, func(l audit.Line) bool { c.add(l); return true }); err != nil {
			return History{}, fmt.Errorf("read the audit log %s: %w", file, err)
		}
	}
	for _, f := range verifier.Done(rights...) {
		c.unknown("%s", f)
	}
	c.judge(rights)
	return c.history(), nil
}

func (c *chains) unknown(format string, args ...any) {
	c.found.Unknown = append(c.found.Unknown, fmt.Sprintf(format, args...))
}

// add takes a line.
func (c *chains) add(l audit.Line) {
	e := l.Event
	if !l.OK || e.Log != audit.Rights || e.Replica == "" {
		return
	}
	if first, ok := c.first[e.Replica]; !ok || e.Seq < first.Seq {
		c.first[e.Replica] = e
	}
	if e.Seq > c.last[e.Replica].Seq {
		c.last[e.Replica] = e
	}
	head := c.heads[e.Replica]
	if e.Seq == head.Seq {
		c.reached[e.Replica] = true
		if l.Hash != head.Hash {
			c.unknown("replica %s, event %d is not the one that the backup was made at: the chain is another one from there on", e.Replica, e.Seq)
		}
	}
	if e.Seq > head.Seq && e.Lost > 0 {
		c.unknown("replica %s, event %d: %d events before it could not be written", e.Replica, e.Seq, e.Lost)
	}
	c.change(e, e.Seq > head.Seq)
}

// change keeps an event. later is true for one that follows the backup.
func (c *chains) change(e audit.Event, later bool) {
	if !later && e.Time.Before(c.order.BackupAt.Add(-onItsWay)) {
		return
	}
	key := e.Replica + "\n" + e.ID + "\n" + e.Action
	if e.Stage == audit.StageIntent {
		c.asked[key] = e
		return
	}
	c.answered[key] = true
	switch {
	case !later:
	case e.Code < http.StatusBadRequest || endsByRefusal(e):
		c.events = append(c.events, e)
	case e.Code >= http.StatusInternalServerError:
		c.failed[key] = e
	}
}

// judge compares the chains with their heads in the backup.
func (c *chains) judge(rights []audit.Head) {
	if len(rights) == 0 {
		c.unknown("the backup names no chain of rights: its hub kept none in a file")
	}
	for _, h := range rights {
		first, ok := c.first[h.Replica]
		switch {
		case !ok && h.Seq > 0:
			// The verifier says that it is missing.
		case !ok:
			c.unknown("replica %s, rights: is missing, with the whole chain", h.Replica)
		case c.reached[h.Replica], h.Seq == 0 && first.Seq == 1:
		case first.Seq == h.Seq+1 && first.Prev == h.Hash:
		case first.Seq > h.Seq+1:
			c.unknown("replica %s, rights: events %d to %d are missing; the backup was made before them", h.Replica, h.Seq+1, first.Seq-1)
		case first.Seq == h.Seq+1:
			c.unknown("replica %s, event %d does not follow the one that the backup was made at", h.Replica, first.Seq)
		}
	}
	for replica, first := range c.first {
		if _, ok := c.heads[replica]; !ok && first.Seq > 1 {
			c.unknown("replica %s, rights: events 1 to %d are missing; the backup does not name the chain", replica, first.Seq-1)
		}
	}
	slices.Sort(c.found.Unknown)
}

func (c *chains) history() History {
	h := c.found
	h.Events = c.events
	for key, e := range c.asked {
		if failed, ok := c.failed[key]; ok {
			// Nothing was written by a request that failed before its intent.
			h.Events = append(h.Events, failed)
		} else if !c.answered[key] {
			h.Events = append(h.Events, e)
		}
	}
	slices.SortFunc(h.Events, func(a, b audit.Event) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Replica, b.Replica), cmp.Compare(a.Seq, b.Seq))
	})
	for replica, e := range c.last {
		h.Ends = append(h.Ends, End{Replica: replica, Seq: e.Seq, Time: e.Time})
	}
	slices.SortFunc(h.Ends, func(a, b End) int { return cmp.Compare(a.Replica, b.Replica) })
	return h
}

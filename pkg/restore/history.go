package restore

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/faroshq/kedge-hub/pkg/audit"
)

// OnItsWay is the age up to which a change that has no outcome may still be carried out. No request writes for as long.
const OnItsWay = 10 * time.Minute

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
	order  Order
	chains map[string]*chain
	// asked are the intents, and answered the changes with an outcome. Files come in any order.
	asked    map[string]audit.Event
	answered map[string]bool
	// failed are the outcomes that say neither that a change was made nor that it was not.
	failed map[string]audit.Event
	events []audit.Event
	found  History
}

// chain is what the files have of the rights of a replica.
type chain struct {
	// head is the last event that the backup has, if it names the chain.
	head  audit.Head
	named bool
	// quiet is true if the chain may have ended before the backup.
	quiet bool
	// reached is true if a file has the event of the head.
	reached bool
	// later are the events that follow it.
	later       map[uint64]link
	first, last audit.Event
}

// link is the place of an event in its chain.
type link struct{ hash, prev string }

// ReadHistory reads the files of an Order. The error is that of a file that cannot be read; what is wrong with the
// chains is in History.Unknown. Lines that are no events, such as those of another program in a stream that both wrote
// to, do not count: an event that one of them was leaves a gap.
func ReadHistory(o Order) (History, error) {
	c := &chains{order: o, chains: map[string]*chain{}, asked: map[string]audit.Event{}, answered: map[string]bool{}, failed: map[string]audit.Event{}}
	for _, h := range o.Heads {
		if h.Log == audit.Rights {
			c.chains[h.Replica] = &chain{head: h, named: true, later: map[uint64]link{}}
		}
	}
	if len(c.chains) == 0 {
		c.unknown("the backup names no chain of rights: its hub kept none in a file")
	}
	for _, h := range o.Quiet {
		if h.Log == audit.Rights {
			c.chains[h.Replica] = &chain{head: h, named: true, quiet: true, later: map[uint64]link{}}
		}
	}
	c.found.Unknown = append(c.found.Unknown, o.Doubts...)
	for _, file := range o.Files {
		if err := audit.Lines(file, 0, func(l audit.Line) bool { c.add(l); return true }); err != nil {
			return History{}, fmt.Errorf("read the audit log %s: %w", file, err)
		}
	}
	for replica, of := range c.chains {
		c.judge(replica, of)
	}
	slices.Sort(c.found.Unknown)
	return c.history(), nil
}

func (c *chains) unknown(format string, args ...any) {
	c.found.Unknown = append(c.found.Unknown, fmt.Sprintf(format, args...))
}

// add takes a line. An event can be in several files, and in the records database.
func (c *chains) add(l audit.Line) {
	e := l.Event
	if !l.OK || e.Log != audit.Rights || e.Replica == "" || e.Seq == 0 ||
		slices.ContainsFunc(c.order.Ended, func(h audit.Head) bool { return h.Replica == e.Replica }) {
		return
	}
	of, ok := c.chains[e.Replica]
	if !ok {
		of = &chain{later: map[uint64]link{}}
		c.chains[e.Replica] = of
	}
	if of.first.Seq == 0 || e.Seq < of.first.Seq {
		of.first = e
	}
	if e.Seq > of.last.Seq {
		of.last = e
	}
	if e.Seq <= of.head.Seq {
		if e.Seq == of.head.Seq {
			of.reached = true
			if l.Hash != of.head.Hash {
				c.unknown("replica %s, event %d is not the one that the backup was made at: the chain is another one from there on", e.Replica, e.Seq)
			}
		}
		c.change(e, false)
		return
	}
	switch held, ok := of.later[e.Seq]; {
	case ok && held.hash == l.Hash:
		return
	case ok:
		c.unknown("replica %s, event %d is there twice, and one of the two was changed", e.Replica, e.Seq)
	default:
		of.later[e.Seq] = link{hash: l.Hash, prev: e.Prev}
	}
	if e.Lost > 0 && (!c.order.EarlyHeads || !c.old(e)) {
		c.unknown("replica %s, event %d: %d events before it could not be written", e.Replica, e.Seq, e.Lost)
	}
	if e.Cut {
		c.unknown("replica %s, event %d does not say what was changed: it was too long", e.Replica, e.Seq)
	}
	c.change(e, true)
}

// old reports whether an event is from so long before the backup that the backup has what it is about.
func (c *chains) old(e audit.Event) bool { return e.Time.Before(c.order.BackupAt.Add(-OnItsWay)) }

// change keeps an event. later is true for one that follows the backup.
func (c *chains) change(e audit.Event, later bool) {
	if (!later || c.order.EarlyHeads) && c.old(e) {
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

// judge follows a chain from its head in the backup on. What is before that is in the backup.
func (c *chains) judge(replica string, of *chain) {
	switch missing := "replica %s, rights: is missing, with the whole chain"; {
	case of.last.Seq == 0 && of.quiet:
		return
	case c.order.EarlyHeads && !of.named && c.old(of.last):
		// It had ended when the backup was made.
		delete(c.chains, replica)
		return
	case of.last.Seq == 0:
		c.unknown(missing, replica)
		return
	case len(of.later) == 0 && !of.reached && of.head.Seq > 0:
		c.unknown("replica %s, rights: events %d to %d are missing: the end of the chain was cut off", replica, of.last.Seq+1, of.head.Seq)
		return
	}
	before := link{hash: of.head.Hash}
	next := of.head.Seq + 1
	if c.order.EarlyHeads && !of.named && c.old(of.first) {
		// The backup has what is before.
		before.hash, next = of.first.Prev, of.first.Seq
	}
	for _, seq := range slices.Sorted(maps.Keys(of.later)) {
		here := of.later[seq]
		switch {
		case seq > next && of.named:
			c.unknown("replica %s, rights: events %d to %d are missing", replica, next, seq-1)
		case seq > next:
			c.unknown("replica %s, rights: events %d to %d are missing; the backup does not name the chain", replica, next, seq-1)
		case here.prev != before.hash && seq == 1:
			c.unknown("replica %s, event 1 is not the beginning of its chain", replica)
		case here.prev != before.hash:
			c.unknown("replica %s, event %d was changed: it is not the one that event %d follows", replica, seq-1, seq)
		}
		before, next = here, seq+1
	}
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
	for replica, of := range c.chains {
		if e := of.last; e.Seq > 0 {
			h.Ends = append(h.Ends, End{Replica: replica, Seq: e.Seq, Time: e.Time})
		}
	}
	slices.SortFunc(h.Ends, func(a, b End) int { return cmp.Compare(a.Replica, b.Replica) })
	return h
}

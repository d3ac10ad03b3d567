package inflight

import (
	"context"
	"sync"
	"time"

	"github.com/faroshq/kedge-hub/pkg/fairqueue"
)

// Room bounds the work in progress of all owners together.
type Room struct {
	// Most is the weight of the work that is in progress at once. A heavier piece counts as Most.
	Most int64
	// Reserve is the last part of the room. It is for owners whose work, that which waits included, weighs
	// Little at most: what owners hold for long is never all of the room. With 0 it is for all.
	Reserve, Little int64
	// Wait limits the time for which work waits.
	Wait time.Duration

	mu   sync.Mutex
	used int64
	// of is the weight of the work of each owner, that which waits included.
	of      map[string]int64
	waiting fairqueue.Queue[string, *piece]
	// next is the piece whose turn it is and for which there was no room yet.
	next *piece
}

// piece is work that waits. Room.mu guards left.
type piece struct {
	weight  int64
	entered chan struct{}
	// left is true if nobody waits for it any more.
	left bool
}

// in reports whether a piece has entered.
func (p *piece) in() bool {
	select {
	case <-p.entered:
		return true
	default:
		return false
	}
}

// Enter waits for room for work of an owner. waited is true if there was none at first. The error is
// ErrFull; without one the caller calls leave once when the work has ended.
func (r *Room) Enter(ctx context.Context, owner string, weight int64) (leave func(), waited bool, err error) {
	taken := min(weight, r.Most)
	leave = func() { r.free(taken, owner) }
	p, ok := r.line(taken, owner)
	switch {
	case !ok:
		return nil, false, ErrFull
	case p == nil:
		return leave, false, nil
	}
	timer := time.NewTimer(r.Wait)
	defer timer.Stop()
	select {
	case <-p.entered:
		return leave, true, nil
	case <-timer.C:
	case <-ctx.Done():
	}
	if r.quit(p, owner) {
		return nil, true, ErrFull
	}
	return leave, true, nil
}

// line puts work into the line. p is nil if it could enter at once, which allocates nothing where nobody waits. ok is false
// if the room that is left is for others.
func (r *Room) line(weight int64, owner string) (p *piece, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Reserve > 0 && r.used+weight > r.Most-r.Reserve && r.of[owner]+weight > r.Little {
		return nil, false
	}
	r.count(owner, weight)
	if r.next == nil && r.waiting.Len() == 0 && r.used+weight <= r.Most {
		r.used += weight
		return nil, true
	}
	p = &piece{weight: weight, entered: make(chan struct{})}
	r.waiting.Push(p, owner, false)
	r.admit()
	if p.in() {
		return nil, true
	}
	return p, true
}

// count adds to the weight of the work of an owner, which the reserve alone asks for. r.mu is locked.
func (r *Room) count(owner string, weight int64) {
	if r.Reserve == 0 {
		return
	}
	if r.of == nil {
		r.of = map[string]int64{}
	}
	if r.of[owner] += weight; r.of[owner] == 0 {
		delete(r.of, owner)
	}
}

// Used returns the weight of the work in progress.
func (r *Room) Used() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used
}

// quit takes back a piece that waits. It is false if the piece has entered meanwhile.
func (r *Room) quit(p *piece, owner string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.in() {
		return false
	}
	p.left = true
	r.count(owner, -p.weight)
	// Others may fit where it did not.
	r.admit()
	return true
}

func (r *Room) free(weight int64, owner string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used -= weight
	r.count(owner, -weight)
	r.admit()
}

// admit lets the pieces in that fit, in their turns. r.mu is locked.
func (r *Room) admit() {
	for {
		if r.next == nil {
			p, _, ok := r.waiting.Pop()
			if !ok {
				return
			}
			r.next = p
		}
		switch {
		case r.next.left:
		case r.used+r.next.weight > r.Most:
			return
		default:
			r.used += r.next.weight
			close(r.next.entered)
		}
		r.next = nil
	}
}

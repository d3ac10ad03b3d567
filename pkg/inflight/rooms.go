package inflight

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrFull is the error of work that gets no room: too much of its kind waits already, or it has waited
// too long.
var ErrFull = errors.New("too much is in progress")

// Rooms are a Room for each key that has work.
type Rooms struct {
	// Most is the weight of the work of one key that is in progress at once. A heavier piece counts as
	// Most.
	Most int64
	// Pieces is the number of pieces of work of one key that are in progress or wait.
	Pieces int
	// Wait limits the time for which work waits.
	Wait time.Duration

	mu sync.Mutex
	of map[string]*counted
}

// counted is the Room of a key. Rooms.mu guards pieces.
type counted struct {
	Room
	pieces int
}

// Enter waits for room for work of an owner in the Room of a key. waited is true if there was none at
// first. The error is ErrFull; without one the caller calls leave once when the work has ended.
func (r *Rooms) Enter(ctx context.Context, key, owner string, weight int64) (leave func(), waited bool, err error) {
	of, ok := r.join(key)
	if !ok {
		return nil, false, ErrFull
	}
	out, waited, err := of.Enter(ctx, owner, weight)
	if err != nil {
		r.quit(key, of)
		return nil, waited, err
	}
	return func() {
		out()
		r.quit(key, of)
	}, waited, nil
}

// Try is Enter for work that does not wait.
func (r *Rooms) Try(key, owner string, weight int64) (leave func(), ok bool) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	leave, _, err := r.Enter(ctx, key, owner, weight)
	return leave, err == nil
}

// join counts a piece of work of a key. ok is false if too many are there.
func (r *Rooms) join(key string) (of *counted, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of = r.of[key]; of == nil {
		if r.of == nil {
			r.of = map[string]*counted{}
		}
		of = &counted{Room: Room{Most: r.Most, Wait: r.Wait}}
		r.of[key] = of
	}
	if of.pieces >= r.Pieces {
		return nil, false
	}
	of.pieces++
	return of, true
}

func (r *Rooms) quit(key string, of *counted) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of.pieces--; of.pieces == 0 {
		delete(r.of, key)
	}
}

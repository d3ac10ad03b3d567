// Package keylock serializes work on one object within the process. A caller that waits leaves
// when its context ends, which k8s.io/utils/keymutex cannot do.
//
// # Decisions
//
//   - Each key has a lock of its own while it is held, and none otherwise. Locks that keys share by
//     their hash would let a tenant choose objects that share the lock of another tenant's object.
//   - Callers who wait for a key take turns, and endings come first: WithCaller tells who waits and for
//     what. Nobody can delay their own removal by requests, and no flood of endings that one person
//     sends delays the ending that another one sends.
package keylock

import (
	"context"
	"sync"

	"github.com/faroshq/kedge-hub/pkg/fairqueue"
)

// Locks are mutexes by key.
type Locks struct {
	mu sync.Mutex
	// held has the waiters of each key that is locked.
	held map[string]*waiters
}

type waiters = fairqueue.Queue[string, *waiter]

// waiter is a caller who waits for a key. Locks.mu guards left.
type waiter struct {
	// turn is closed when the caller has the lock.
	turn chan struct{}
	// left is true if the context of the caller ended.
	left bool
}

// New returns Locks that nobody holds.
func New() *Locks { return &Locks{held: map[string]*waiters{}} }

type callerKey struct{}

type caller struct {
	name   string
	ending bool
}

// WithCaller returns a context with the name of the caller on whose behalf it takes locks. ending is
// true for work that takes rights away.
func WithCaller(ctx context.Context, name string, ending bool) context.Context {
	return context.WithValue(ctx, callerKey{}, caller{name, ending})
}

// Lock takes the lock of a key. Callers who wait get it in turn, endings first; those without a name
// count as one. waited is true if another caller held it. The error is that of the context.
func (l *Locks) Lock(ctx context.Context, key string) (unlock func(), waited bool, err error) {
	unlock = func() { l.pass(key) }
	l.mu.Lock()
	waiting, held := l.held[key]
	if !held {
		l.held[key] = &waiters{}
		l.mu.Unlock()
		return unlock, false, nil
	}
	by, _ := ctx.Value(callerKey{}).(caller)
	w := &waiter{turn: make(chan struct{})}
	waiting.Push(w, by.name, by.ending)
	l.mu.Unlock()
	select {
	case <-w.turn:
		return unlock, true, nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-w.turn:
		// The lock came at the same time.
		l.next(key)
	default:
		w.left = true
	}
	return nil, true, ctx.Err()
}

// pass passes the lock of a key on.
func (l *Locks) pass(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next(key)
}

// next gives the lock of a key to the next waiter. The caller holds l.mu.
func (l *Locks) next(key string) {
	waiting := l.held[key]
	for {
		switch next, _, ok := waiting.Pop(); {
		case !ok:
			delete(l.held, key)
			return
		case !next.left:
			close(next.turn)
			return
		}
	}
}

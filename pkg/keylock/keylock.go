// Package keylock serializes work on one object within the process. A caller that waits leaves
// when its context ends, which k8s.io/utils/keymutex cannot do.
//
// # Decisions
//
//   - Keys share a fixed number of locks by their hash, as in keymutex, so nothing is counted or
//     removed. A caller may therefore wait for another key, and must not take two locks of one
//     Locks at the same time: they can be the same.
package keylock

import (
	"context"
	"hash/maphash"

	"golang.org/x/sync/semaphore"
)

// size is the number of locks. Of twenty objects that are written at the same time, a fiftieth
// of the writers then meet at the lock of another object.
const size = 1024

// Locks are mutexes by key.
type Locks struct {
	seed  maphash.Seed
	locks [size]*semaphore.Weighted
}

// New returns Locks that nobody holds.
func New() *Locks {
	l := &Locks{seed: maphash.MakeSeed()}
	for i := range l.locks {
		l.locks[i] = semaphore.NewWeighted(1)
	}
	return l
}

// Lock takes the lock of a key. Callers get it in the order of their calls. waited is true if
// another caller held it. The error is that of the context.
func (l *Locks) Lock(ctx context.Context, key string) (unlock func(), waited bool, err error) {
	lock := l.locks[maphash.String(l.seed, key)%size]
	if waited = !lock.TryAcquire(1); waited {
		if err := lock.Acquire(ctx, 1); err != nil {
			return nil, true, err
		}
	}
	return func() { lock.Release(1) }, waited, nil
}

package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// remembered is the number of objects that Once remembers.
const remembered = 1024

// Once runs a func once for each object, however often the object is reconciled. It is for
// effects that cannot be compared with a desired state, such as log entries. It remembers the
// last objects in memory, so the func can run again after a restart; it is never skipped.
type Once struct {
	mu   sync.Mutex
	done map[types.UID]struct{}
}

// Do calls f, unless it was called for that UID before.
func (o *Once) Do(uid types.UID, f func()) {
	if o.first(uid) {
		f()
	}
}

func (o *Once) first(uid types.UID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.done[uid]; ok {
		return false
	}
	if o.done == nil || len(o.done) >= remembered {
		o.done = map[types.UID]struct{}{}
	}
	o.done[uid] = struct{}{}
	return true
}

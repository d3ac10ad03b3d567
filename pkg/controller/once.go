package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// remembered is for how many objects Once knows that something was done.
const remembered = 1024

// Once does something for an object one time, however often a pass over it is
// repeated: for what cannot be undone or compared, such as telling of it. The memory
// is that of the process, and of the last objects only, so it may be done again after
// a restart; it is never left out.
type Once struct {
	mu   sync.Mutex
	done map[types.UID]struct{}
}

// Do calls f, unless it has done so for the object of that UID before.
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

package controller

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Echo tells the events of a controller's own status writes from those of
// others'. A controller is not woken by the status that it wrote itself, but it is by one
// that somebody altered: that, too, is put right (O-11).
type Echo struct {
	mu    sync.Mutex
	wrote map[Key]written
}

// written is the last status write of an object; heard says that its event came and
// woke nobody.
type written struct {
	resourceVersion string
	heard           bool
}

// NewEcho returns an Echo that has heard nothing.
func NewEcho() *Echo { return &Echo{wrote: map[Key]written{}} }

// Wrote notes the resource version that a status write of the controller's gave
// the object.
func (e *Echo) Wrote(key Key, resourceVersion string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wrote[key] = written{resourceVersion: resourceVersion}
}

// Is tells whether an object with this resource version is as the controller left
// it. An event that is faster than the answer to the write is not recognised,
// which costs a pass and nothing else.
func (e *Echo) Is(key Key, resourceVersion string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.wrote[key]
	if resourceVersion == "" || w.resourceVersion != resourceVersion {
		return false
	}
	e.wrote[key] = written{resourceVersion, true}
	return true
}

// Seen is get for a controller with an Echo. A pass that goes by an object from
// before the controller's own last write may find that one right, where what was
// written is not right any more: so the event of that write must wake the controller
// after all, and where it did not the object is read once more.
func Seen[T metav1.Object](e *Echo, get func(Key) (T, bool)) func(Key) (T, bool) {
	return func(key Key) (T, bool) {
		o, ok := get(key)
		if ok && e.missed(key, o.GetResourceVersion()) {
			return get(key)
		}
		return o, ok
	}
}

// missed forgets what was written where it is not what the pass goes by, and tells
// whether its event is past.
func (e *Echo) missed(key Key, resourceVersion string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	w, ok := e.wrote[key]
	if !ok || w.resourceVersion == resourceVersion {
		return false
	}
	delete(e.wrote, key)
	return w.heard
}

// Forget drops what is known of an object that is gone.
func (e *Echo) Forget(key Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.wrote, key)
}

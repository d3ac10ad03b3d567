package controller

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Echo is the own-write filter of a controller. Events of the controller's own status writes do
// not enqueue the object; a status that somebody else changed does, because it is repaired (O-11).
type Echo struct {
	mu    sync.Mutex
	wrote map[Key]written
}

// written is the last status write of an object. heard is true if its event was filtered.
type written struct {
	resourceVersion string
	heard           bool
}

// NewEcho returns an empty Echo.
func NewEcho() *Echo { return &Echo{wrote: map[Key]written{}} }

// Wrote records the resource version after a status write of the controller.
func (e *Echo) Wrote(key Key, resourceVersion string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wrote[key] = written{resourceVersion: resourceVersion}
}

// Is reports whether this resource version is the result of the controller's own write. An event
// that arrives before the answer to the write is not recognised, which costs one pass.
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

// Seen wraps get for a controller with an Echo. A pass on an outdated object, from before the
// controller's last write, can find nothing to change although the written status is no longer
// right. The event of that write must then enqueue the object after all; if it was filtered
// already, the object is read once more.
func Seen[T metav1.Object](e *Echo, get func(Key) (T, bool)) func(Key) (T, bool) {
	return func(key Key) (T, bool) {
		o, ok := get(key)
		if ok && e.missed(key, o.GetResourceVersion()) {
			return get(key)
		}
		return o, ok
	}
}

// missed forgets the last write if the pass uses another version, and reports whether the event
// of that write was filtered.
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

// Forget removes a deleted object.
func (e *Echo) Forget(key Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.wrote, key)
}

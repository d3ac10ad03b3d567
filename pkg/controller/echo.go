package controller

import "sync"

// Echo tells the events of a controller's own status writes from those of
// others'. A controller is not woken by the status that it wrote itself, but it is by one
// that somebody altered: that, too, is put right (O-11).
type Echo struct {
	mu    sync.Mutex
	wrote map[Key]string
}

// NewEcho returns an Echo that has heard nothing.
func NewEcho() *Echo { return &Echo{wrote: map[Key]string{}} }

// Wrote notes the resource version that a status write of the controller's gave
// the object.
func (e *Echo) Wrote(key Key, resourceVersion string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wrote[key] = resourceVersion
}

// Is tells whether an object with this resource version is as the controller left
// it. An event that is faster than the answer to the write is not recognised,
// which costs a pass and nothing else.
func (e *Echo) Is(key Key, resourceVersion string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return resourceVersion != "" && e.wrote[key] == resourceVersion
}

// Forget drops what is known of an object that is gone.
func (e *Echo) Forget(key Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.wrote, key)
}

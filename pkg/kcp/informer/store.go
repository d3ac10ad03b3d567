package informer

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/faroshq/kedge-hub/pkg/kcp"
)

// Compact is the compact encoding of an object.
type Compact[T kcp.Object] interface {
	// Decode returns the object, which has this name in this logical cluster. What it
	// points to may be shared.
	Decode(cluster, name string) T
}

// store is the reflector's store of one endpoint. It holds each object, or its compact
// encoding, by cluster and name. It has no combined keys and no indexes, which would
// take more memory than a Membership.
type store[T kcp.Object] struct {
	// prepare makes a T or a Compact[T] from an object that was received.
	prepare func(T) any
	notify  Handler[T]
	// overlay is all stores of the kind, this one included. Handlers see the changes of
	// what all of them show together.
	overlay *overlay[T]
	// full is called when handlers have seen the first list.
	full func()

	// mu is for readers: only one goroutine writes.
	mu       sync.RWMutex
	clusters map[string]*byName[any]
	filled   atomic.Bool
}

// newStore returns a store at the bottom of the overlay.
func newStore[T kcp.Object](in *overlay[T], prepare func(T) any, notify Handler[T], full func()) *store[T] {
	s := &store[T]{prepare: prepare, notify: notify, overlay: in, full: full, clusters: map[string]*byName[any]{}}
	in.add(s)
	return s
}

func decode[T kcp.Object](cluster, name string, stored any) T {
	if c, ok := stored.(Compact[T]); ok {
		return c.Decode(cluster, name)
	}
	return stored.(T)
}

func (s *store[T]) get(cluster, name string) (T, bool) {
	s.mu.RLock()
	stored, ok := s.clusters[cluster].get(name)
	s.mu.RUnlock()
	if !ok {
		var none T
		return none, false
	}
	return decode[T](cluster, name, stored), true
}

func (s *store[T]) has(cluster, name string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, ok := s.clusters[cluster].get(name)
	return ok
}

// hasCluster reports whether there are objects of a logical cluster.
func (s *store[T]) hasCluster(cluster string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.clusters[cluster] != nil
}

// inCluster decodes only objects with a wanted name, because decoding is most of the
// work.
func (s *store[T]) inCluster(cluster string, wanted func(name string) bool) []T {
	s.mu.RLock()
	stored := s.clusters[cluster].all()
	s.mu.RUnlock()
	stored = slices.DeleteFunc(stored, func(n named[any]) bool { return !wanted(n.name) })
	out := make([]T, 0, len(stored))
	for _, n := range stored {
		out = append(out, decode[T](cluster, n.name, n.value))
	}
	return out
}

func anyName(string) bool { return true }

// names are the logical clusters that have objects.
func (s *store[T]) names() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Keys(s.clusters))
}

// Add implements cache.ReflectorStore.
func (s *store[T]) Add(o any) error { return s.Update(o) }

// Update implements cache.ReflectorStore.
func (s *store[T]) Update(o any) error {
	object, ok := o.(T)
	if !ok {
		return fmt.Errorf("a watch of %T got a %T", object, o)
	}
	s.put(object)
	return nil
}

// put does not replace an object by another of the same version, because handlers may
// keep the first.
func (s *store[T]) put(o T) {
	cluster, name := kcp.ClusterOf(o), nameOf(o)
	s.overlay.notifying.Lock()
	defer s.overlay.notifying.Unlock()
	old, known := s.get(cluster, name)
	if known && sameVersion(old, o) {
		return
	}
	covered, shown := s.overlay.covered(s, cluster, name), known
	if !covered && !known {
		old, shown = s.overlay.below(s, cluster, name)
	}
	prepared := s.prepare(o)
	s.mu.Lock()
	in := s.clusters[cluster]
	if in == nil {
		in = &byName[any]{}
		s.clusters[cluster] = in
	}
	in.put(name, prepared)
	s.mu.Unlock()
	if !covered && (!shown || !sameVersion(old, o)) {
		s.notify(old, o)
	}
}

func sameVersion[T kcp.Object](a, b T) bool { return a.GetResourceVersion() == b.GetResourceVersion() }

// Delete implements cache.ReflectorStore.
func (s *store[T]) Delete(o any) error {
	object, ok := o.(T)
	if !ok {
		return fmt.Errorf("a watch of %T got a %T", object, o)
	}
	s.remove(kcp.ClusterOf(object), nameOf(object))
	return nil
}

func (s *store[T]) remove(cluster, name string) {
	s.overlay.notifying.Lock()
	defer s.overlay.notifying.Unlock()
	old, ok := s.get(cluster, name)
	if !ok {
		return
	}
	s.mu.Lock()
	in := s.clusters[cluster]
	in.remove(name)
	if in.empty() {
		delete(s.clusters, cluster)
	}
	s.mu.Unlock()
	if s.overlay.covered(s, cluster, name) {
		return
	}
	if now, ok := s.overlay.below(s, cluster, name); !ok || !sameVersion(old, now) {
		s.notify(old, now)
	}
}

// Replace implements cache.ReflectorStore.
func (s *store[T]) Replace(all []any, _ string) error {
	type key struct{ cluster, name string }
	listed := make(map[key]struct{}, len(all))
	for _, o := range all {
		object, ok := o.(T)
		if !ok {
			return fmt.Errorf("a list of %T has a %T in it", object, o)
		}
		listed[key{kcp.ClusterOf(object), nameOf(object)}] = struct{}{}
		s.put(object)
	}
	s.drop(func(cluster, name string) bool {
		_, ok := listed[key{cluster, name}]
		return !ok
	})
	if !s.filled.Swap(true) {
		s.full()
	}
	return nil
}

// drop removes objects, one after the other.
func (s *store[T]) drop(which func(cluster, name string) bool) {
	// There is no other writer, so reading needs no lock.
	for cluster, in := range s.clusters {
		for _, n := range in.all() {
			if which(cluster, n.name) {
				s.remove(cluster, n.name)
			}
		}
	}
}

// isFilled reports whether handlers have seen the first list.
func (s *store[T]) isFilled() bool { return s.filled.Load() }

// Resync implements cache.ReflectorStore. Handlers are called for changes only.
func (s *store[T]) Resync() error { return nil }

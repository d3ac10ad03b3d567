package kcp

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Packed is an object in a form that takes less memory than the object itself.
type Packed[T Object] interface {
	// Unpack returns the object of that name in that logical cluster, as it was. What
	// it points to may be shared.
	Unpack(cluster, name string) T
}

// store is what a reflector fills with the objects that one endpoint serves. Of
// each it holds the object, or what it was packed to, and nothing else: no key made
// of cluster and name, and no index, which take more memory than a Membership does.
type store[T Object] struct {
	// prepare makes an object from the wire what is to be held, a T or a Packed[T].
	prepare func(T) any
	changed Handler[T]

	// mu is for those who read: a single goroutine writes.
	mu       sync.RWMutex
	clusters map[string]*shelf[any]
	filled   atomic.Bool
}

func newStore[T Object](prepare func(T) any, changed Handler[T]) *store[T] {
	return &store[T]{prepare: prepare, changed: changed, clusters: map[string]*shelf[any]{}}
}

func unpack[T Object](cluster, name string, held any) T {
	if p, ok := held.(Packed[T]); ok {
		return p.Unpack(cluster, name)
	}
	return held.(T)
}

func (s *store[T]) get(cluster, name string) (T, bool) {
	s.mu.RLock()
	held, ok := s.clusters[cluster].get(name)
	s.mu.RUnlock()
	if !ok {
		var none T
		return none, false
	}
	return unpack[T](cluster, name, held), true
}

// inCluster leaves alone what is not of a name that is wanted: to unpack is most of
// the work.
func (s *store[T]) inCluster(cluster string, wanted func(name string) bool) []T {
	s.mu.RLock()
	held := s.clusters[cluster].list()
	s.mu.RUnlock()
	held = slices.DeleteFunc(held, func(h named[any]) bool { return !wanted(h.name) })
	out := make([]T, 0, len(held))
	for _, h := range held {
		out = append(out, unpack[T](cluster, h.name, h.value))
	}
	return out
}

func anyName(string) bool { return true }

// all goes through one logical cluster after the other, because there may be very
// many objects.
func (s *store[T]) all(yield func(T) bool) bool {
	s.mu.RLock()
	clusters := slices.Collect(maps.Keys(s.clusters))
	s.mu.RUnlock()
	for _, cluster := range clusters {
		for _, o := range s.inCluster(cluster, anyName) {
			if !yield(o) {
				return false
			}
		}
	}
	return true
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

// put leaves what is held already as it is: handlers have kept it.
func (s *store[T]) put(o T) {
	cluster, name, version := ClusterOf(o), o.GetName(), o.GetResourceVersion()
	old, known := s.get(cluster, name)
	if known && old.GetResourceVersion() == version {
		return
	}
	held := s.prepare(o)
	s.mu.Lock()
	in := s.clusters[cluster]
	if in == nil {
		in = &shelf[any]{}
		s.clusters[cluster] = in
	}
	in.put(name, held)
	s.mu.Unlock()
	s.changed(old, o)
}

// Delete implements cache.ReflectorStore.
func (s *store[T]) Delete(o any) error {
	object, ok := o.(T)
	if !ok {
		return fmt.Errorf("a watch of %T got a %T", object, o)
	}
	s.remove(ClusterOf(object), object.GetName())
	return nil
}

func (s *store[T]) remove(cluster, name string) {
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
	var none T
	s.changed(old, none)
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
		listed[key{ClusterOf(object), object.GetName()}] = struct{}{}
		s.put(object)
	}
	s.drop(func(cluster, name string) bool {
		_, ok := listed[key{cluster, name}]
		return !ok
	})
	s.filled.Store(true)
	return nil
}

// drop removes objects, one after the other.
func (s *store[T]) drop(which func(cluster, name string) bool) {
	// Nobody else writes, and so what is only read here needs no lock.
	for cluster, in := range s.clusters {
		for _, n := range in.list() {
			if which(cluster, n.name) {
				s.remove(cluster, n.name)
			}
		}
	}
}

// Resync implements cache.ReflectorStore; handlers are told of changes only.
func (s *store[T]) Resync() error { return nil }

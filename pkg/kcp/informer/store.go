package informer

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/faroshq/kedge-hub/pkg/kcp"
)

// Compact is an object in a form that takes less memory than the object itself.
type Compact[T kcp.Object] interface {
	// Decode returns the object of that name in that logical cluster, as it was. What
	// it points to may be shared.
	Decode(cluster, name string) T
}

// store is what a reflector fills with the objects that one endpoint serves. Of
// each it holds the object, or what it was packed to, and nothing else: no key made
// of cluster and name, and no index, which take more memory than a Membership does.
type store[T kcp.Object] struct {
	// prepare makes an object from the wire what is to be held, a T or a Compact[T].
	prepare func(T) any
	changed Handler[T]
	// of are all stores of the kind, this one among them. What is told is what changes
	// in all of them together.
	of *overlay[T]
	// full is called when all that existed at the start has been told.
	full func()

	// mu is for those who read: a single goroutine writes.
	mu       sync.RWMutex
	clusters map[string]*shelf[any]
	filled   atomic.Bool
}

// newStore returns the last store of the union.
func newStore[T kcp.Object](of *overlay[T], prepare func(T) any, changed Handler[T], full func()) *store[T] {
	s := &store[T]{prepare: prepare, changed: changed, of: of, full: full, clusters: map[string]*shelf[any]{}}
	of.add(s)
	return s
}

func unpack[T kcp.Object](cluster, name string, held any) T {
	if p, ok := held.(Compact[T]); ok {
		return p.Decode(cluster, name)
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

func (s *store[T]) has(cluster, name string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, ok := s.clusters[cluster].get(name)
	return ok
}

// holds tells whether there is anything of the logical cluster.
func (s *store[T]) holds(cluster string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.clusters[cluster] != nil
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

// names are the logical clusters that there is something of.
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

// put leaves what is held already as it is: handlers have kept it.
func (s *store[T]) put(o T) {
	cluster, name := kcp.ClusterOf(o), o.GetName()
	s.of.telling.Lock()
	defer s.of.telling.Unlock()
	old, known := s.get(cluster, name)
	if known && same(old, o) {
		return
	}
	hidden, shown := s.of.hidden(s, cluster, name), known
	if !hidden && !known {
		old, shown = s.of.behind(s, cluster, name)
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
	if !hidden && (!shown || !same(old, o)) {
		s.changed(old, o)
	}
}

func same[T kcp.Object](a, b T) bool { return a.GetResourceVersion() == b.GetResourceVersion() }

// Delete implements cache.ReflectorStore.
func (s *store[T]) Delete(o any) error {
	object, ok := o.(T)
	if !ok {
		return fmt.Errorf("a watch of %T got a %T", object, o)
	}
	s.remove(kcp.ClusterOf(object), object.GetName())
	return nil
}

func (s *store[T]) remove(cluster, name string) {
	s.of.telling.Lock()
	defer s.of.telling.Unlock()
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
	if s.of.hidden(s, cluster, name) {
		return
	}
	if now, ok := s.of.behind(s, cluster, name); !ok || !same(old, now) {
		s.changed(old, now)
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
		listed[key{kcp.ClusterOf(object), object.GetName()}] = struct{}{}
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

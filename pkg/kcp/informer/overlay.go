package informer

import (
	"slices"
	"sync"

	"github.com/faroshq/kedge-hub/pkg/kcp"
)

// overlay is the stores of a kind on top of each other: an object is that of the first
// store that has its key. An endpoint that replaces another serves the same objects for
// a while.
type overlay[T kcp.Object] struct {
	// notifying keeps the changes of a key in order, whichever store they come through:
	// it is held from before a change until every handler has returned.
	notifying sync.Mutex

	mu     sync.RWMutex
	stores []*store[T]
}

func (l *overlay[T]) all() []*store[T] {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.stores
}

// add and remove change a copy, because readers hold the slice.
func (l *overlay[T]) add(s *store[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stores = append(slices.Clone(l.stores), s)
}

func (l *overlay[T]) remove(s *store[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stores = slices.DeleteFunc(slices.Clone(l.stores), func(x *store[T]) bool { return x == s })
}

// covered reports whether a store above this one has the key.
func (l *overlay[T]) covered(s *store[T], cluster, name string) bool {
	for _, x := range l.all() {
		if x == s {
			return false
		}
		if x.has(cluster, name) {
			return true
		}
	}
	return false
}

// below is the object that shows where neither this store nor one above it has the key.
func (l *overlay[T]) below(s *store[T], cluster, name string) (T, bool) {
	stores := l.all()
	for _, x := range stores[slices.Index(stores, s)+1:] {
		if o, ok := x.get(cluster, name); ok {
			return o, true
		}
	}
	var none T
	return none, false
}

func (l *overlay[T]) get(cluster, name string) (T, bool) {
	for _, s := range l.all() {
		if o, ok := s.get(cluster, name); ok {
			return o, true
		}
	}
	var none T
	return none, false
}

// inCluster leaves out what it has found in a store above by itself, because stores
// change meanwhile.
func (l *overlay[T]) inCluster(cluster string, wanted func(name string) bool) []T {
	var out []T
	var found map[string]bool
	for n, s := range l.all() {
		if n == 0 {
			out = s.inCluster(cluster, wanted)
			continue
		}
		if found == nil {
			found = make(map[string]bool, len(out))
		}
		for _, o := range out[len(found):] {
			found[nameOf(o)] = true
		}
		out = append(out, s.inCluster(cluster, func(name string) bool { return wanted(name) && !found[name] })...)
	}
	return out
}

// each yields one logical cluster after the other, because there may be very many
// objects.
func (l *overlay[T]) each(yield func(T) bool) {
	clusters := map[string]struct{}{}
	for _, s := range l.all() {
		for _, cluster := range s.names() {
			clusters[cluster] = struct{}{}
		}
	}
	for cluster := range clusters {
		for _, o := range l.inCluster(cluster, anyName) {
			if !yield(o) {
				return
			}
		}
	}
}

package views

import (
	"slices"
	"sync"

	"github.com/faroshq/kedge-hub/pkg/kcp"
)

// index finds the objects of a kind by keys that follow from the object.
type index[K comparable, T kcp.Object] struct {
	keys func(o T) []K

	mu      sync.RWMutex
	objects map[K][]T
}

func newIndex[K comparable, T kcp.Object](keys func(o T) []K) *index[K, T] {
	return &index[K, T]{keys: keys, objects: map[K][]T{}}
}

// indexed is an index with keys of any type.
type indexed[T kcp.Object] interface{ update(old, new T) }

func (x *index[K, T]) update(old, new T) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if exists(old) {
		for _, key := range x.keys(old) {
			x.remove(key, old)
		}
	}
	if exists(new) {
		for _, key := range x.keys(new) {
			x.objects[key] = append(x.objects[key], new)
		}
	}
}

func (x *index[K, T]) remove(key K, old T) {
	in := x.objects[key]
	i := slices.IndexFunc(in, func(o T) bool { return any(o) == any(old) })
	if i < 0 {
		// A removal may come with another copy of the object.
		i = slices.IndexFunc(in, func(o T) bool {
			return o.GetName() == old.GetName() && o.GetNamespace() == old.GetNamespace() && kcp.ClusterOf(o) == kcp.ClusterOf(old)
		})
	}
	switch last := len(in) - 1; {
	case i < 0:
	case last == 0:
		delete(x.objects, key)
	default:
		in[i] = in[last]
		x.objects[key] = slices.Delete(in, last, last+1)
	}
}

// all returns the objects with a key, in no order. The slice is the caller's.
func (x *index[K, T]) all(key K) []T {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.Clone(x.objects[key])
}

// one returns the object with a key. Where several have it, it is the oldest one, on every replica
// alike.
func (x *index[K, T]) one(key K) (o T, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, other := range x.objects[key] {
		if !ok || older(other, o) {
			o, ok = other, true
		}
	}
	return o, ok
}

// values returns the objects of all keys, in no order.
func (x *index[K, T]) values() []T {
	x.mu.RLock()
	defer x.mu.RUnlock()
	all := make([]T, 0, len(x.objects))
	for _, in := range x.objects {
		all = append(all, in...)
	}
	return all
}

func older[T kcp.Object](a, b T) bool {
	at, before := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	if at.Equal(&before) {
		return a.GetName() < b.GetName()
	}
	return at.Before(&before)
}

package views

import (
	"maps"
	"slices"
	"sync"

	"github.com/faroshq/kedge-hub/pkg/kcp"
)

// index finds the objects of a kind by keys that follow from the object.
type index[K comparable, T kcp.Object] struct {
	keys func(o T) []K

	mu sync.RWMutex
	// first has one object of each key, and more has the other ones. Most keys have one object, and a
	// slice takes more memory.
	first map[K]T
	more  map[K][]T
}

func newIndex[K comparable, T kcp.Object](keys func(o T) []K) *index[K, T] {
	return &index[K, T]{keys: keys, first: map[K]T{}, more: map[K][]T{}}
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
			if _, ok := x.first[key]; ok {
				x.more[key] = append(x.more[key], new)
			} else {
				x.first[key] = new
			}
		}
	}
}

func (x *index[K, T]) remove(key K, old T) {
	more := x.more[key]
	last := len(more) - 1
	switch i := find(more, old); {
	case i >= 0:
		more[i] = more[last]
	case find([]T{x.first[key]}, old) < 0:
		return
	case last < 0:
		delete(x.first, key)
		return
	default:
		x.first[key] = more[last]
	}
	if last == 0 {
		delete(x.more, key)
	} else {
		x.more[key] = slices.Delete(more, last, last+1)
	}
}

// find returns the position of an object. A removal may come with another copy of it.
func find[T kcp.Object](in []T, o T) int {
	if i := slices.IndexFunc(in, func(other T) bool { return any(other) == any(o) }); i >= 0 {
		return i
	}
	return slices.IndexFunc(in, func(other T) bool {
		return exists(other) && other.GetName() == o.GetName() && other.GetNamespace() == o.GetNamespace() && kcp.ClusterOf(other) == kcp.ClusterOf(o)
	})
}

// all returns the objects with a key, in no order. The slice is the caller's.
func (x *index[K, T]) all(key K) []T {
	x.mu.RLock()
	defer x.mu.RUnlock()
	o, ok := x.first[key]
	if !ok {
		return nil
	}
	return append([]T{o}, x.more[key]...)
}

// some returns at most limit of the objects with a key.
func (x *index[K, T]) some(key K, limit int) []T {
	x.mu.RLock()
	defer x.mu.RUnlock()
	o, ok := x.first[key]
	if !ok || limit < 1 {
		return nil
	}
	more := x.more[key]
	return append([]T{o}, more[:min(len(more), limit-1)]...)
}

// one returns the object with a key. Where several have it, it is the oldest one, on every replica
// alike.
func (x *index[K, T]) one(key K) (o T, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	o, ok = x.first[key]
	for _, other := range x.more[key] {
		if older(other, o) {
			o = other
		}
	}
	return o, ok
}

// values returns the objects of all keys, in no order.
func (x *index[K, T]) values() []T {
	x.mu.RLock()
	defer x.mu.RUnlock()
	all := slices.AppendSeq(make([]T, 0, len(x.first)), maps.Values(x.first))
	for _, more := range x.more {
		all = append(all, more...)
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

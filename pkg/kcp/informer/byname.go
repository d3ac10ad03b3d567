package informer

import "slices"

// maxList is the number of values up to which byName is a list. Most logical clusters
// have few objects of a kind, and a map of one takes as much memory as a Membership.
const maxList = 8

// byName holds the values of one logical cluster by name. A nil one is empty.
type byName[V any] struct {
	list  []named[V]
	index map[string]V
}

type named[V any] struct {
	name  string
	value V
}

func (b *byName[V]) get(name string) (V, bool) {
	if b == nil {
		var none V
		return none, false
	}
	if b.index != nil {
		v, ok := b.index[name]
		return v, ok
	}
	for _, n := range b.list {
		if n.name == name {
			return n.value, true
		}
	}
	var none V
	return none, false
}

func (b *byName[V]) put(name string, v V) {
	// The string that is kept is the one that the new value holds itself.
	b.remove(name)
	switch {
	case b.index != nil:
		b.index[name] = v
	case len(b.list) == maxList:
		b.index = map[string]V{name: v}
		for _, n := range b.list {
			b.index[n.name] = n.value
		}
		b.list = nil
	default:
		b.list = append(slices.Clone(b.list), named[V]{name, v})
	}
}

func (b *byName[V]) remove(name string) {
	if b.index != nil {
		delete(b.index, name)
		return
	}
	b.list = slices.DeleteFunc(b.list, func(n named[V]) bool { return n.name == name })
}

func (b *byName[V]) empty() bool { return len(b.list) == 0 && len(b.index) == 0 }

// all returns a copy.
func (b *byName[V]) all() []named[V] {
	if b == nil {
		return nil
	}
	all := make([]named[V], 0, len(b.list)+len(b.index))
	all = append(all, b.list...)
	for name, v := range b.index {
		all = append(all, named[V]{name, v})
	}
	return all
}

// len returns the number of values.
func (b *byName[V]) len() int { return len(b.list) + len(b.index) }

// each yields all values. They must not change meanwhile.
func (b *byName[V]) each(yield func(name string, v V) bool) {
	for _, n := range b.list {
		if !yield(n.name, n.value) {
			return
		}
	}
	for name, v := range b.index {
		if !yield(name, v) {
			return
		}
	}
}

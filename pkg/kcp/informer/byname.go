package informer

import "slices"

// few is up to how many are looked through one by one. Most Orgs have few members,
// and a map of one takes as much memory as a Membership.
const few = 8

// shelf holds values by name. A nil one is empty.
type shelf[V any] struct {
	few  []named[V]
	many map[string]V
}

type named[V any] struct {
	name  string
	value V
}

func (s *shelf[V]) get(name string) (V, bool) {
	if s == nil {
		var none V
		return none, false
	}
	if s.many != nil {
		v, ok := s.many[name]
		return v, ok
	}
	for _, n := range s.few {
		if n.name == name {
			return n.value, true
		}
	}
	var none V
	return none, false
}

func (s *shelf[V]) put(name string, v V) {
	// The name that is kept is the one that the value itself holds.
	s.remove(name)
	switch {
	case s.many != nil:
		s.many[name] = v
	case len(s.few) == few:
		s.many = map[string]V{name: v}
		for _, n := range s.few {
			s.many[n.name] = n.value
		}
		s.few = nil
	default:
		s.few = append(slices.Clone(s.few), named[V]{name, v})
	}
}

func (s *shelf[V]) remove(name string) {
	if s.many != nil {
		delete(s.many, name)
		return
	}
	s.few = slices.DeleteFunc(s.few, func(n named[V]) bool { return n.name == name })
}

func (s *shelf[V]) empty() bool { return len(s.few) == 0 && len(s.many) == 0 }

// list is the caller's own.
func (s *shelf[V]) list() []named[V] {
	if s == nil {
		return nil
	}
	all := make([]named[V], 0, len(s.few)+len(s.many))
	all = append(all, s.few...)
	for name, v := range s.many {
		all = append(all, named[V]{name, v})
	}
	return all
}

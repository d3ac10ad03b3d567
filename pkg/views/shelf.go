package views

import (
	"slices"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// fewMemberships is up to how many are looked through one by one. Most people are
// in few places and most Orgs have few members, and a map of one takes as much
// memory as a Membership.
const fewMemberships = 8

// shelf holds Memberships by a key that follows from them. A nil one is empty.
type shelf[K comparable] struct {
	few  []*v1alpha1.Membership
	many map[K]*v1alpha1.Membership
}

func (s *shelf[K]) get(key K, keyOf func(*v1alpha1.Membership) K) (*v1alpha1.Membership, bool) {
	if s == nil {
		return nil, false
	}
	if s.many != nil {
		m, ok := s.many[key]
		return m, ok
	}
	for _, m := range s.few {
		if keyOf(m) == key {
			return m, true
		}
	}
	return nil, false
}

func (s *shelf[K]) put(m *v1alpha1.Membership, keyOf func(*v1alpha1.Membership) K) {
	s.remove(keyOf(m), keyOf)
	switch {
	case s.many != nil:
		s.many[keyOf(m)] = m
	case len(s.few) == fewMemberships:
		s.many = map[K]*v1alpha1.Membership{keyOf(m): m}
		for _, held := range s.few {
			s.many[keyOf(held)] = held
		}
		s.few = nil
	default:
		few := make([]*v1alpha1.Membership, len(s.few), len(s.few)+1)
		copy(few, s.few)
		s.few = append(few, m)
	}
}

func (s *shelf[K]) remove(key K, keyOf func(*v1alpha1.Membership) K) {
	if s.many != nil {
		delete(s.many, key)
		return
	}
	s.few = slices.DeleteFunc(s.few, func(m *v1alpha1.Membership) bool { return keyOf(m) == key })
}

func (s *shelf[K]) empty() bool { return len(s.few) == 0 && len(s.many) == 0 }

// list is the caller's own.
func (s *shelf[K]) list() []*v1alpha1.Membership {
	if s == nil {
		return nil
	}
	all := make([]*v1alpha1.Membership, 0, len(s.few)+len(s.many))
	all = append(all, s.few...)
	for _, m := range s.many {
		all = append(all, m)
	}
	return all
}

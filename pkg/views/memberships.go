package views

import (
	"slices"
	"sync"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// held are the Memberships themselves. What is derived from them here is told of a
// change after held has it.
type held interface {
	Get(cluster, name string) (*v1alpha1.Membership, bool)
	InCluster(cluster string) []*v1alpha1.Membership
	Named(cluster string, wanted func(name string) bool) []*v1alpha1.Membership
}

type memberships struct {
	held held

	mu      sync.RWMutex
	people  map[string]*person
	total   int
	indexes int
}

// person is what is known of the rights of a User, and gone when nothing is.
type person struct {
	index  *v1alpha1.UserMembershipIndex
	places []place
	// honoured are the rows of the index that Memberships stand behind, kept until
	// either changes.
	honoured []v1alpha1.MembershipIndexEntry
	judged   bool
}

// place is where a Membership of a person is found, and what of it every request of
// theirs asks for.
type place struct {
	Key
	sudo bool
}

func newMemberships(h held) memberships {
	return memberships{held: h, people: map[string]*person{}}
}

func (m *memberships) index(_ string, old, new *v1alpha1.UserMembershipIndex) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old != nil {
		m.indexes--
	}
	if new == nil {
		m.change(old.Name, func(p *person) { p.index = nil })
		return
	}
	m.change(new.Name, func(p *person) { p.index = new })
	m.indexes++
}

func (m *memberships) membership(cluster string, old, new *v1alpha1.Membership) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old != nil {
		m.change(old.Spec.UserRef.Name, func(p *person) { p.leave(Key{cluster, old.Name}) })
		m.total--
	}
	if new != nil {
		m.change(new.Spec.UserRef.Name, func(p *person) {
			p.enter(place{Key{cluster, new.Name}, new.Spec.Sudo && new.DeletionTimestamp.IsZero()})
		})
		m.total++
	}
}

// enter and leave alter a copy, which readers do not have, and leave no room to grow:
// there are very many people.
func (p *person) enter(in place) {
	places := make([]place, len(p.places)+1)
	places[copy(places, p.places)] = in
	p.places = places
}

func (p *person) leave(key Key) {
	p.places = exact(slices.DeleteFunc(slices.Clone(p.places), func(in place) bool { return in.Key == key }))
}

// change alters what is known of a User; what was honoured is to be judged again.
func (m *memberships) change(user string, do func(*person)) {
	p := m.people[user]
	if p == nil {
		p = &person{}
		m.people[user] = p
	}
	do(p)
	p.honoured, p.judged = nil, false
	if p.index == nil && len(p.places) == 0 {
		delete(m.people, user)
	}
}

// entries are the rows of the User's index that Memberships stand behind; clusterOf
// is the logical cluster of an Org's own workspace.
func (m *memberships) entries(user string, clusterOf func(org string) string) []v1alpha1.MembershipIndexEntry {
	m.mu.RLock()
	p := m.people[user]
	if p == nil || p.judged {
		defer m.mu.RUnlock()
		return p.rows()
	}
	m.mu.RUnlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if p = m.people[user]; p == nil || p.index == nil {
		return nil
	}
	p.honoured, p.judged = tenancy.Honoured(p.index.Spec.Entries, func(org, workspace string) (*v1alpha1.Membership, bool) {
		return m.held.Get(clusterOf(org), tenancy.MembershipName(user, workspace))
	}), true
	return p.rows()
}

// rows has no room to grow: who appends to it gets their own.
func (p *person) rows() []v1alpha1.MembershipIndexEntry {
	if p == nil {
		return nil
	}
	return slices.Clip(p.honoured)
}

// moved forgets what was honoured in an Org whose cluster was not known, or was
// another.
func (m *memberships) moved(cluster string) {
	in := m.held.InCluster(cluster)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, held := range in {
		m.change(held.Spec.UserRef.Name, func(*person) {})
	}
}

func (m *memberships) of(user string) []*v1alpha1.Membership {
	var places []place
	m.mu.RLock()
	if p := m.people[user]; p != nil {
		places = p.places
	}
	m.mu.RUnlock()
	all := make([]*v1alpha1.Membership, 0, len(places))
	for _, in := range places {
		if held, ok := m.held.Get(in.Cluster, in.Name); ok {
			all = append(all, held)
		}
	}
	return all
}

func (m *memberships) sudo(user string, key Key) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	p := m.people[user]
	return p != nil && slices.Contains(p.places, place{key, true})
}

func (m *memberships) indexCount() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.indexes
}

func (m *memberships) count() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.total
}

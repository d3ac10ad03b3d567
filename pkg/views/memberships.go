package views

import (
	"slices"
	"sync"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// objectKey is an object in a logical cluster.
type objectKey struct{ cluster, name string }

type memberships struct {
	mu        sync.RWMutex
	people    map[string]*person
	byCluster map[string]*shelf[string]
	total     int
	indexes   int
	// emptied is told of a logical cluster whose last Membership is gone.
	emptied func(cluster string)
}

// person is what is known of the rights of a User, and gone when nothing is.
type person struct {
	index       *v1alpha1.UserMembershipIndex
	memberships shelf[objectKey]
	// honoured are the rows of the index that Memberships stand behind, kept until
	// either changes.
	honoured []v1alpha1.MembershipIndexEntry
	judged   bool
}

func newMemberships(emptied func(cluster string)) memberships {
	return memberships{people: map[string]*person{}, byCluster: map[string]*shelf[string]{}, emptied: emptied}
}

func nameOf(m *v1alpha1.Membership) string { return m.Name }

func keyOf(m *v1alpha1.Membership) objectKey { return objectKey{kcp.ClusterOf(m), m.Name} }

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
		m.change(old.Spec.UserRef.Name, func(p *person) { p.memberships.remove(keyOf(old), keyOf) })
		if in := m.byCluster[cluster]; in != nil {
			in.remove(old.Name, nameOf)
		}
		m.total--
	}
	if new != nil {
		m.change(new.Spec.UserRef.Name, func(p *person) { p.memberships.put(new, keyOf) })
		if m.byCluster[cluster] == nil {
			m.byCluster[cluster] = &shelf[string]{}
		}
		m.byCluster[cluster].put(new, nameOf)
		m.total++
	}
	if in := m.byCluster[cluster]; in != nil && in.empty() {
		delete(m.byCluster, cluster)
		m.emptied(cluster)
	}
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
	if p.index == nil && p.memberships.empty() {
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
		return m.byCluster[clusterOf(org)].get(tenancy.MembershipName(user, workspace), nameOf)
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
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, held := range m.byCluster[cluster].list() {
		m.change(held.Spec.UserRef.Name, func(*person) {})
	}
}

func (m *memberships) inCluster(cluster string) []*v1alpha1.Membership {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.byCluster[cluster].list()
}

func (m *memberships) get(cluster, name string) (*v1alpha1.Membership, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.byCluster[cluster].get(name, nameOf)
}

func (m *memberships) of(user string) []*v1alpha1.Membership {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if p := m.people[user]; p != nil {
		return p.memberships.list()
	}
	return nil
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

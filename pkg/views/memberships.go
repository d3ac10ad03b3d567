package views

import (
	"sync"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// objectKey is an object in a logical cluster.
type objectKey struct{ cluster, name string }

type memberships struct {
	mu        sync.RWMutex
	indexes   map[string]*v1alpha1.UserMembershipIndex
	byUser    map[string]map[objectKey]*v1alpha1.Membership
	byCluster map[string]map[string]*v1alpha1.Membership
	total     int
}

func newMemberships() memberships {
	return memberships{
		indexes:   map[string]*v1alpha1.UserMembershipIndex{},
		byUser:    map[string]map[objectKey]*v1alpha1.Membership{},
		byCluster: map[string]map[string]*v1alpha1.Membership{},
	}
}

func (m *memberships) index(_ string, old, new *v1alpha1.UserMembershipIndex) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if new == nil {
		delete(m.indexes, old.Name)
		return
	}
	m.indexes[new.Name] = new
}

func (m *memberships) membership(cluster string, old, new *v1alpha1.Membership) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old != nil {
		remove(m.byUser, old.Spec.UserRef.Name, objectKey{cluster, old.Name})
		remove(m.byCluster, cluster, old.Name)
		m.total--
	}
	if new != nil {
		put(m.byUser, new.Spec.UserRef.Name, objectKey{cluster, new.Name}, new)
		put(m.byCluster, cluster, new.Name, new)
		m.total++
	}
}

func put[O, I comparable, V any](m map[O]map[I]V, outer O, inner I, v V) {
	if m[outer] == nil {
		m[outer] = map[I]V{}
	}
	m[outer][inner] = v
}

func remove[O, I comparable, V any](m map[O]map[I]V, outer O, inner I) {
	delete(m[outer], inner)
	if len(m[outer]) == 0 {
		delete(m, outer)
	}
}

func (m *memberships) entries(user string) []v1alpha1.MembershipIndexEntry {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if i := m.indexes[user]; i != nil {
		return i.Spec.Entries
	}
	return nil
}

func (m *memberships) inCluster(cluster string) []*v1alpha1.Membership {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return values(m.byCluster[cluster])
}

func (m *memberships) get(cluster, name string) (*v1alpha1.Membership, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	found, ok := m.byCluster[cluster][name]
	return found, ok
}

func (m *memberships) of(user string) []*v1alpha1.Membership {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return values(m.byUser[user])
}

func values[K comparable, V any](m map[K]V) []V {
	out := make([]V, 0, len(m))
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

func (m *memberships) indexCount() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.indexes)
}

func (m *memberships) count() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.total
}

package views

import (
	"sync"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// objectKey is an object in a logical cluster.
type objectKey struct{ cluster, name string }

type memberships struct {
	mu        sync.RWMutex
	indexes   map[string]*v1alpha1.UserMembershipIndex
	byUser    map[string]map[objectKey]*v1alpha1.Membership
	byCluster map[string]map[string]*v1alpha1.Membership
	// honoured are the rows of indexes that Memberships stand behind, by User, kept
	// until either changes.
	honoured map[string][]v1alpha1.MembershipIndexEntry
	total    int
}

func newMemberships() memberships {
	return memberships{
		indexes:   map[string]*v1alpha1.UserMembershipIndex{},
		byUser:    map[string]map[objectKey]*v1alpha1.Membership{},
		byCluster: map[string]map[string]*v1alpha1.Membership{},
		honoured:  map[string][]v1alpha1.MembershipIndexEntry{},
	}
}

func (m *memberships) index(_ string, old, new *v1alpha1.UserMembershipIndex) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if new == nil {
		delete(m.indexes, old.Name)
		delete(m.honoured, old.Name)
		return
	}
	m.indexes[new.Name] = new
	delete(m.honoured, new.Name)
}

func (m *memberships) membership(cluster string, old, new *v1alpha1.Membership) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old != nil {
		remove(m.byUser, old.Spec.UserRef.Name, objectKey{cluster, old.Name})
		remove(m.byCluster, cluster, old.Name)
		delete(m.honoured, old.Spec.UserRef.Name)
		m.total--
	}
	if new != nil {
		put(m.byUser, new.Spec.UserRef.Name, objectKey{cluster, new.Name}, new)
		put(m.byCluster, cluster, new.Name, new)
		delete(m.honoured, new.Spec.UserRef.Name)
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

// entries are the rows of the User's index that Memberships stand behind; clusterOf
// is the logical cluster of an Org's own workspace.
func (m *memberships) entries(user string, clusterOf func(org string) string) []v1alpha1.MembershipIndexEntry {
	m.mu.RLock()
	rows, ok := m.honoured[user]
	m.mu.RUnlock()
	if ok {
		return rows
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.indexes[user]
	if i == nil {
		return nil
	}
	rows = tenancy.Honoured(i.Spec.Entries, func(org, workspace string) (*v1alpha1.Membership, bool) {
		held, ok := m.byCluster[clusterOf(org)][tenancy.MembershipName(user, workspace)]
		return held, ok
	})
	m.honoured[user] = rows
	return rows
}

// moved forgets what was honoured in an Org whose cluster was not known, or was
// another.
func (m *memberships) moved(cluster string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, held := range m.byCluster[cluster] {
		delete(m.honoured, held.Spec.UserRef.Name)
	}
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

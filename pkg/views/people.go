package views

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// notifying wraps a view's handler: objects from another cluster than the one
// that the kind belongs in are not believed (cluster may be empty for any), and
// everybody who waits is woken after the change.
func notifying[T kcp.Object](v *Views, cluster string, h func(cluster string, old, new T)) kcp.Handler[T] {
	var none T
	return func(old, new T) {
		o := new
		if any(o) == any(none) {
			o = old
		}
		from := kcp.ClusterOf(o)
		if cluster != "" && from != cluster {
			return
		}
		h(from, old, new)
		v.changed.wake()
	}
}

type identity struct{ issuer, subject string }

type people struct {
	mu         sync.RWMutex
	names      map[string]*v1alpha1.User
	identities map[identity]*v1alpha1.User
}

func newPeople() people {
	return people{names: map[string]*v1alpha1.User{}, identities: map[identity]*v1alpha1.User{}}
}

func (p *people) change(_ string, old, new *v1alpha1.User) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old != nil {
		delete(p.names, old.Name)
		id := identity{old.Spec.Issuer, old.Spec.Subject}
		if held := p.identities[id]; held != nil && held.Name == old.Name {
			delete(p.identities, id)
		}
	}
	if new == nil {
		return
	}
	p.names[new.Name] = new
	// Where two Users claim one identity, the older one is the person, on every
	// replica alike.
	id := identity{new.Spec.Issuer, new.Spec.Subject}
	if held := p.identities[id]; held == nil || held.Name == new.Name || older(new, held) {
		p.identities[id] = new
	}
}

func older(a, b *v1alpha1.User) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.Name < b.Name
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}

func (p *people) byIdentity(issuer, subject string) (*v1alpha1.User, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	u, ok := p.identities[identity{issuer, subject}]
	return u, ok
}

func (p *people) byName(name string) (*v1alpha1.User, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	u, ok := p.names[name]
	return u, ok
}

// search finds approved people whose name or display name holds all of query, at
// most limit of them, in the order of their names.
func (p *people) search(query string, limit int) []*v1alpha1.User {
	query = strings.ToLower(query)
	p.mu.RLock()
	defer p.mu.RUnlock()
	var found []*v1alpha1.User
	for _, u := range p.names {
		if tenancy.Active(u) && (strings.Contains(u.Name, query) || strings.Contains(strings.ToLower(u.Spec.DisplayName), query)) {
			found = append(found, u)
		}
	}
	slices.SortFunc(found, func(a, b *v1alpha1.User) int { return cmp.Compare(a.Name, b.Name) })
	return found[:min(limit, len(found))]
}

func (p *people) all() []*v1alpha1.User {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.Collect(maps.Values(p.names))
}

func (p *people) size() int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return len(p.names)
}

package views

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

type identity struct{ issuer, subject string }

type people struct {
	mu         sync.RWMutex
	names      map[string]*v1alpha1.User
	identities map[identity]*v1alpha1.User
	usernames  map[string]*v1alpha1.User
	// listed caches the values of names, so that a search does not hold the lock. It is nil
	// after a change, until the next call.
	listed atomic.Pointer[[]*v1alpha1.User]
}

func newPeople() *people {
	return &people{names: map[string]*v1alpha1.User{}, identities: map[identity]*v1alpha1.User{}, usernames: map[string]*v1alpha1.User{}}
}

func (p *people) change(_ string, old, new *v1alpha1.User) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listed.Store(nil)
	if old != nil {
		delete(p.names, old.Name)
		release(p.identities, identity{old.Spec.Issuer, old.Spec.Subject}, old)
		release(p.usernames, old.Spec.RBACIdentity, old)
	}
	if new == nil {
		return
	}
	p.names[new.Name] = new
	claim(p.identities, identity{new.Spec.Issuer, new.Spec.Subject}, new)
	claim(p.usernames, new.Spec.RBACIdentity, new)
}

func release[K comparable](held map[K]*v1alpha1.User, key K, u *v1alpha1.User) {
	if found := held[key]; found != nil && found.Name == u.Name {
		delete(held, key)
	}
}

// claim gives key to u. Where two Users claim one, the older one has it, on every replica
// alike.
func claim[K comparable](held map[K]*v1alpha1.User, key K, u *v1alpha1.User) {
	if found := held[key]; found == nil || found.Name == u.Name || older(u, found) {
		held[key] = u
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

func (p *people) byUsername(rbacIdentity string) (*v1alpha1.User, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	u, ok := p.usernames[rbacIdentity]
	return u, ok
}

func (p *people) byName(name string) (*v1alpha1.User, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	u, ok := p.names[name]
	return u, ok
}

// search returns active Users with query in their name or display name: at most limit,
// ordered by name.
func (p *people) search(query string, limit int) []*v1alpha1.User {
	query = strings.ToLower(query)
	found := make([]*v1alpha1.User, 0, limit)
	for _, u := range p.everybody() {
		if !strings.Contains(u.Name, query) && !containsLower(u.Spec.DisplayName, query) || !tenancy.Active(u) {
			continue
		}
		at, _ := slices.BinarySearchFunc(found, u.Name, func(f *v1alpha1.User, name string) int { return cmp.Compare(f.Name, name) })
		if at < limit {
			found = slices.Insert(found[:min(len(found), limit-1)], at, u)
		}
	}
	return found
}

// containsLower is strings.Contains(strings.ToLower(s), lower) without the copy.
func containsLower(s, lower string) bool {
	for i := range s {
		if startsLower(s[i:], lower) {
			return true
		}
	}
	return lower == ""
}

func startsLower(s, lower string) bool {
	for _, want := range lower {
		r, n := utf8.DecodeRuneInString(s)
		if n == 0 || r != want && unicode.ToLower(r) != want {
			return false
		}
		s = s[n:]
	}
	return true
}

func (p *people) all() []*v1alpha1.User { return slices.Clone(p.everybody()) }

// everybody returns all Users. The list is shared: read only.
func (p *people) everybody() []*v1alpha1.User {
	if listed := p.listed.Load(); listed != nil {
		return *listed
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	listed := slices.AppendSeq(make([]*v1alpha1.User, 0, len(p.names)), maps.Values(p.names))
	p.listed.Store(&listed)
	return listed
}

func (p *people) size() int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return len(p.names)
}

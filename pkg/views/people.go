package views

import (
	"cmp"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

type identity struct{ issuer, subject string }

// people finds Users.
type people struct {
	names, usernames *index[string, *v1alpha1.User]
	identities       *index[identity, *v1alpha1.User]
	groups           *index[v1alpha1.GroupHash, *v1alpha1.User]
	// listed caches all Users, so that a search does not hold a lock. It holds as long as there is no
	// other change.
	listed  atomic.Pointer[listed]
	changes atomic.Uint64
}

type listed struct {
	changes uint64
	users   []*v1alpha1.User
}

func newPeople() *people {
	return &people{
		names:     newIndex(func(u *v1alpha1.User) []string { return []string{u.Name} }),
		usernames: newIndex(func(u *v1alpha1.User) []string { return []string{u.Spec.RBACIdentity} }),
		identities: newIndex(func(u *v1alpha1.User) []identity {
			return []identity{{u.Spec.Issuer, u.Spec.Subject}}
		}),
		groups: newIndex(func(u *v1alpha1.User) []v1alpha1.GroupHash {
			if u.Spec.Groups == nil {
				return nil
			}
			return u.Spec.Groups.Hashes
		}),
	}
}

func (p *people) indexes() []indexed[*v1alpha1.User] {
	return []indexed[*v1alpha1.User]{p.names, p.usernames, p.identities, p.groups}
}

func (p *people) change(_ string, _, _ *v1alpha1.User) { p.changes.Add(1) }

// ByIdentity finds a User by issuer and subject. Where two claim one, the older one has it, here and
// below.
func (p *people) ByIdentity(issuer, subject string) (*v1alpha1.User, bool) {
	return p.identities.one(identity{issuer, subject})
}

// ByUsername finds the User with a username in kcp.
func (p *people) ByUsername(rbacIdentity string) (*v1alpha1.User, bool) {
	return p.usernames.one(rbacIdentity)
}

// ByName finds a User by metadata.name.
func (p *people) ByName(name string) (*v1alpha1.User, bool) { return p.names.one(name) }

// WithGroup returns the Users with a group, according to their newest credentials, in no order.
func (p *people) WithGroup(hash v1alpha1.GroupHash) []*v1alpha1.User { return p.groups.all(hash) }

// SomeWithGroup returns at most limit of the Users with a group.
func (p *people) SomeWithGroup(hash v1alpha1.GroupHash, limit int) []*v1alpha1.User {
	return p.groups.some(hash, limit)
}

// SearchPeople returns active Users with query in their name or display name: at most limit,
// ordered by name.
func (p *people) SearchPeople(query string, limit int) []*v1alpha1.User {
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

// People returns all Users, in no order.
func (p *people) People() []*v1alpha1.User { return slices.Clone(p.everybody()) }

// everybody returns all Users. The list is shared: read only.
func (p *people) everybody() []*v1alpha1.User {
	if kept := p.listed.Load(); kept != nil && kept.changes == p.changes.Load() {
		return kept.users
	}
	changes := p.changes.Load()
	users := p.names.values()
	p.listed.Store(&listed{changes, users})
	return users
}

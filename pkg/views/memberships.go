package views

import (
	"slices"
	"sync"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// membershipLister reads the Memberships. It has a change before memberships is told.
type membershipLister interface {
	Get(cluster, name string) (*v1alpha1.Membership, bool)
	InCluster(cluster string) []*v1alpha1.Membership
	Named(cluster string, wanted func(name string) bool) []*v1alpha1.Membership
}

type memberships struct {
	lister membershipLister
	expiry *expiry

	mu     sync.RWMutex
	people map[string]*person
}

// person caches the rights of a User. A person without an index and without Memberships
// is dropped.
type person struct {
	index  *v1alpha1.UserMembershipIndex
	places []place
	// honoured caches the rows of the index that have a Membership; valid is false after a
	// change of either.
	honoured []v1alpha1.MembershipIndexEntry
	valid    bool
	// until is the soonest end of these Memberships in Unix time, or zero.
	until int64
	// version counts these changes. filling is held by the reader that computes the rows.
	version uint64
	filling sync.Mutex
}

// place is the key of a person's Membership, and the fields of it that every proxied
// request needs. end is in Unix time, or zero. One of several parts is looked up.
type place struct {
	Key
	sudo, parts bool
	end         int64
}

func newMemberships(e *expiry) *memberships {
	return &memberships{people: map[string]*person{}, expiry: e}
}

func (m *memberships) index(_ string, old, new *v1alpha1.UserMembershipIndex) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if new == nil {
		m.change(old.Name, func(p *person) { p.index = nil })
		return
	}
	m.change(new.Name, func(p *person) { p.index = new })
}

func (m *memberships) membership(cluster string, old, new *v1alpha1.Membership) {
	m.expiry.change(keyOf(Change[*v1alpha1.Membership]{old, new}.Object()), endsOf(old), endsOf(new))
	m.mu.Lock()
	defer m.mu.Unlock()
	if old != nil {
		m.change(old.Spec.UserRef.Name, func(p *person) { p.leave(Key{cluster, old.Name}) })
	}
	if new != nil {
		m.change(new.Spec.UserRef.Name, func(p *person) {
			p.enter(place{Key{cluster, new.Name}, new.Spec.Sudo && new.DeletionTimestamp.IsZero(), len(new.Spec.Extra) > 0, firstEnd(new)})
		})
	}
}

// enter and leave change a copy, because readers may have the slice, and leave no spare
// capacity, because there are very many people.
func (p *person) enter(in place) {
	places := make([]place, len(p.places)+1)
	places[copy(places, p.places)] = in
	p.places = places
}

func (p *person) leave(key Key) {
	p.places = exact(slices.DeleteFunc(slices.Clone(p.places), func(in place) bool { return in.Key == key }))
}

// change changes the person of a User and drops the cached rows.
func (m *memberships) change(user string, do func(*person)) {
	p := m.people[user]
	if p == nil {
		p = &person{}
		m.people[user] = p
	}
	do(p)
	p.honoured, p.valid, p.until = nil, false, 0
	p.version++
	if p.index == nil && len(p.places) == 0 {
		delete(m.people, user)
	}
}

// touch drops the cached rows of a User.
func (m *memberships) touch(user string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.people[user] != nil {
		m.change(user, func(*person) {})
	}
}

// entries returns the rows of the User's index that have a Membership. clusterOf returns
// the logical cluster of an Org's own workspace.
func (m *memberships) entries(user string, clusterOf func(org string) string) []v1alpha1.MembershipIndexEntry {
	p, rows, ok := m.cached(user)
	if ok {
		return rows
	}
	p.filling.Lock()
	defer p.filling.Unlock()
	m.mu.RLock()
	index, version, valid, rows := p.index, p.version, m.valid(p), p.rows()
	m.mu.RUnlock()
	if valid || index == nil {
		// Another reader has computed them meanwhile.
		return rows
	}
	// Without m.mu: a person with very many rows does not delay the requests of others.
	until := int64(0)
	rows = slices.Clip(tenancy.Honoured(index.Spec.Entries, func(org, workspace string) (*v1alpha1.Membership, bool) {
		found, ok := m.Membership(clusterOf(org), tenancy.MembershipName(user, workspace))
		if end := firstEnd(found); ok && end != 0 && (until == 0 || end < until) {
			until = end
		}
		return found, ok
	}))
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.version == version {
		p.honoured, p.valid, p.until = rows, true, until
	}
	return rows
}

// valid reports whether the cached rows of a person are those of now. The caller holds m.mu.
func (m *memberships) valid(p *person) bool {
	return p.valid && (p.until == 0 || m.expiry.clock.Now().Unix() < p.until)
}

// cached returns the cached rows of a User. ok is false if they must be computed for the person.
func (m *memberships) cached(user string) (p *person, rows []v1alpha1.MembershipIndexEntry, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	p = m.people[user]
	return p, p.rows(), p == nil || m.valid(p) || p.index == nil
}

// rows has no spare capacity, so that append copies it.
func (p *person) rows() []v1alpha1.MembershipIndexEntry {
	if p == nil {
		return nil
	}
	return slices.Clip(p.honoured)
}

// moved drops the cached rows of the members of an Org after its logical cluster changed.
func (m *memberships) moved(cluster string) {
	in := m.lister.InCluster(cluster)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, each := range in {
		m.change(each.Spec.UserRef.Name, func(*person) {})
	}
}

// MembershipsOf returns the living Memberships of a User, in no order. One that has ended by time is
// not among them, here and below.
func (m *memberships) MembershipsOf(user string) []*v1alpha1.Membership {
	var places []place
	m.mu.RLock()
	if p := m.people[user]; p != nil {
		places = p.places
	}
	m.mu.RUnlock()
	all := make([]*v1alpha1.Membership, 0, len(places))
	for _, in := range places {
		if found, ok := m.Membership(in.Cluster, in.Name); ok {
			all = append(all, found)
		}
	}
	return all
}

// at returns the place of a User, or none.
func (m *memberships) at(user string, key Key) place {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if p := m.people[user]; p != nil {
		if i := slices.IndexFunc(p.places, func(in place) bool { return in.Key == key }); i >= 0 {
			return p.places[i]
		}
	}
	return place{}
}

func (m *memberships) sudo(user string, key Key) bool {
	in := m.at(user, key)
	if in.parts {
		found, ok := m.Membership(key.Cluster, key.Name)
		return ok && found.Spec.Sudo && found.DeletionTimestamp.IsZero()
	}
	return in.sudo && !m.expiry.ended(key, in.end)
}

func (m *memberships) ending(user string, key Key) bool {
	in := m.at(user, key)
	if in.parts {
		found, ok := m.lister.Get(key.Cluster, key.Name)
		return ok && m.expiry.partEnded(found, key)
	}
	return in.end != 0 && m.expiry.ended(key, in.end)
}

// living returns what the Memberships give now, without those that have ended by time. It changes the slice.
func (m *memberships) living(all []*v1alpha1.Membership) []*v1alpha1.Membership {
	living := all[:0]
	for _, o := range all {
		if e := m.expiry.effective(o, keyOf(o)); e != nil {
			living = append(living, e)
		}
	}
	clear(all[len(living):])
	return living
}

// Membership finds a Membership by name. orgCluster is the logical cluster of the Org's own
// workspace, here and below. The Membership is as tenancy.Effective returns it, here and elsewhere.
func (m *memberships) Membership(orgCluster, name string) (*v1alpha1.Membership, bool) {
	found, ok := m.lister.Get(orgCluster, name)
	if ok {
		found = m.expiry.effective(found, Key{orgCluster, name})
	}
	return found, ok && found != nil
}

// MembershipsIn returns the Memberships in an Org, in no order.
func (m *memberships) MembershipsIn(orgCluster string) []*v1alpha1.Membership {
	return m.living(m.lister.InCluster(orgCluster))
}

// MembershipsAt returns the Memberships of a Workspace of the Org, or those of the Org
// itself where workspace is empty, in no order.
func (m *memberships) MembershipsAt(orgCluster, workspace string) []*v1alpha1.Membership {
	return m.living(m.lister.Named(orgCluster, func(name string) bool { return tenancy.NamedFor(name, workspace) }))
}

// MembershipsOver returns the Memberships that give rights in a Workspace of the Org, in no
// order: the Workspace's and the Org's own.
func (m *memberships) MembershipsOver(orgCluster, workspace string) []*v1alpha1.Membership {
	return m.living(m.lister.Named(orgCluster, func(name string) bool {
		return tenancy.NamedFor(name, "") || tenancy.NamedFor(name, workspace)
	}))
}

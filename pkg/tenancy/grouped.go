package tenancy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// Grouped is what the mappings of an Organization decide by.
type Grouped struct {
	Organization *v1alpha1.Organization
	// Memberships are all of the Organization.
	Memberships []*v1alpha1.Membership
	// With returns the Users who have a group, in a slice of its own, and User finds one.
	With func(v1alpha1.GroupHash) []*v1alpha1.User
	User func(name string) (*v1alpha1.User, bool)
	// Workspace reports whether a Workspace of the Organization exists.
	Workspace func(uuid string) bool
	// Places counts the Memberships of a User.
	Places func(user string) Places
	// Full reports whether the store has no room for anything new.
	Full func() bool
	// MaxAge is for how long the groups of a person count after the issue of the credential that says them.
	MaxAge time.Duration
	Now    time.Time
}

// Places are numbers of Memberships of a person.
type Places struct {
	// All counts them all, and ByGroup those with a part by a group.
	All, ByGroup int
	// ByMaker counts those of ByGroup that are in Organizations of the maker of the one that decides.
	ByMaker int
}

// CountPlaces counts the Memberships of a person. sameMaker reports whether one is in an Organization of the maker of the
// one that decides.
func CountPlaces(memberships []*v1alpha1.Membership, sameMaker func(*v1alpha1.Membership) bool) (p Places) {
	p.All = len(memberships)
	for _, m := range memberships {
		if !HasGroupPart(m) {
			continue
		}
		if p.ByGroup++; sameMaker(m) {
			p.ByMaker++
		}
	}
	return p
}

// full reports whether groups let the person in nowhere else.
func (p Places) full() bool {
	return p.All >= MaxMemberships || p.ByGroup >= maxPlacesByGroup || p.ByMaker >= maxPlacesByMaker
}

// and returns the places with some more that groups of the Organization that decides give.
func (p Places) and(more int) Places { return Places{p.All + more, p.ByGroup + more, p.ByMaker + more} }

// memberAt is what a Membership is of.
type memberAt struct{ user, workspace string }

func (a memberAt) compare(b memberAt) int {
	return cmp.Or(cmp.Compare(a.user, b.user), cmp.Compare(a.workspace, b.workspace))
}

// mapped is a mapping whose place exists.
type mapped struct {
	v1alpha1.GroupMapping
	hash v1alpha1.GroupHash
}

// tally counts people and names the first of them.
type tally struct {
	named []string
	n     int
}

func (t *tally) add(user string) {
	if t.n++; len(t.named) < namedProblems {
		t.named = append(t.named, user)
	}
}

// deciding is one decision. What it holds is bounded by the Memberships of the Organization and the people in one group,
// however many mappings and people there are together.
type deciding struct {
	Grouped
	// mappings are those whose place exists, and at those of a place.
	mappings []mapped
	at       map[string][]mapped
	// held are the Memberships, and pending the changes that are not carried out yet.
	held    map[memberAt]*v1alpha1.Membership
	pending map[memberAt]v1alpha1.MembershipChange
	// decided are the new changes, and replaced the pending ones that they replace.
	decided  []v1alpha1.MembershipChange
	replaced map[memberAt]bool
	// members counts the Memberships with a part by a group, and more is true if not all changes had room.
	members int
	more    bool
	// places are the Memberships of those who were looked at, with the new ones, accepted counts the pending ones by a
	// group, and crowded are in too many places.
	places   map[string]Places
	accepted map[string]int
	crowded  map[string]bool
	// divided have a Membership with too many parts, and left is true if somebody found no place in the Organization.
	divided tally
	left    bool
}

// Decide returns spec.membershipChanges of the Organization with what has to change so that each Membership has the
// parts that groups give, and no other ones of groups. A part ends by time when the credential that says the group is
// too old; newer credentials move that end, but not for less than an eighth of MaxAge. People who are not active lose
// what groups do not give any more, as they would have it again when they are, and get nothing. Those who have a
// Membership come first, then others in the order of the mappings and of names, until there is no room. problems says
// whom a group cannot let in; more is true if not all changes had room.
func (g Grouped) Decide() (changes []v1alpha1.MembershipChange, problems []string, more bool) {
	d := &deciding{
		Grouped: g, at: map[string][]mapped{},
		held: map[memberAt]*v1alpha1.Membership{}, pending: map[memberAt]v1alpha1.MembershipChange{}, replaced: map[memberAt]bool{},
		members: countByGroup(g.Memberships), places: map[string]Places{}, accepted: map[string]int{}, crowded: map[string]bool{},
	}
	for _, m := range g.Organization.Spec.Groups {
		if m.Workspace == "" || g.Workspace(m.Workspace) {
			d.mappings = append(d.mappings, mapped{m, HashGroup(m.Group)})
			d.at[m.Workspace] = append(d.at[m.Workspace], d.mappings[len(d.mappings)-1])
		}
	}
	places := make([]memberAt, 0, len(g.Memberships))
	for _, m := range g.Memberships {
		if at := (memberAt{m.Spec.UserRef.Name, WorkspaceUUID(m)}); m.DeletionTimestamp.IsZero() {
			d.held[at], places = m, append(places, at)
		}
	}
	for _, c := range g.Organization.Spec.MembershipChanges {
		at := memberAt{c.User, c.Workspace}
		if d.pending[at] = c; d.held[at] == nil && ChangeApplies(c, nil) && slices.ContainsFunc(c.Extra, partByGroup) {
			d.members++
			d.accepted[c.User]++
		}
	}
	slices.SortFunc(places, memberAt.compare)
	for _, at := range places {
		if u, ok := g.User(at.user); ok {
			d.keep(at, u)
		}
	}
	for _, m := range d.mappings {
		d.letIn(m)
	}
	return d.changes(), d.problems(), d.more
}

// keep decides about somebody who has a Membership.
func (d *deciding) keep(at memberAt, u *v1alpha1.User) {
	m := d.held[at]
	wanted, has := d.parts(at.workspace, u), false
	for _, x := range ExtrasOf(m) {
		id, ok := GroupOf(x.Source)
		if !ok {
			continue
		}
		has = true
		// The maker of a Workspace whom a group lets into the Organization has such a part in the Workspace.
		i := slices.IndexFunc(d.at[""], func(m mapped) bool { return m.ID == id })
		if at.workspace != "" && i >= 0 {
			if x, ok := d.part(d.at[""][i], x.Role, u); ok {
				wanted = append(wanted, x)
			}
		}
	}
	if len(wanted) == 0 && !has {
		return
	}
	if !Active(u) {
		wanted = heldOf(m, wanted)
	}
	c, ok := d.change(at, m, wanted)
	if pending, waits := d.pending[at]; !ok || waits && ChangeApplies(pending, m) {
		return
	}
	room := maxPendingGrants
	if ReducesMembership(m, c) {
		room = maxPendingChanges
	}
	switch {
	case len(c.Extra) > maxExtra:
		d.divided.add(at.user)
	case d.waiting() >= room:
		d.more = true
	default:
		d.decide(at, c)
	}
}

// heldOf returns the parts that a Membership has already, with ends that are not later.
func heldOf(m *v1alpha1.Membership, parts []v1alpha1.MembershipExtra) (held []v1alpha1.MembershipExtra) {
	for _, p := range parts {
		i := slices.IndexFunc(ExtrasOf(m), func(x v1alpha1.MembershipExtra) bool { return x.Source == p.Source && x.Role == p.Role })
		if i < 0 {
			continue
		}
		if x := ExtrasOf(m)[i]; x.ExpiresAt != nil && x.ExpiresAt.Before(p.ExpiresAt) {
			p = x
		}
		held = append(held, p)
	}
	return held
}

// letIn decides about the people whom a mapping lets in and who have no Membership at its place.
func (d *deciding) letIn(m mapped) {
	if d.left || d.more {
		return
	}
	waiting := slices.DeleteFunc(d.With(m.hash), func(u *v1alpha1.User) bool {
		at := memberAt{u.Name, m.Workspace}
		if d.held[at] != nil || d.replaced[at] || d.crowded[u.Name] || !Active(u) {
			return true
		}
		pending, waits := d.pending[at]
		_, counts := d.part(m, m.Role, u)
		return !counts || waits && ChangeApplies(pending, nil)
	})
	if len(waiting) == 0 || d.noRoom() {
		return
	}
	slices.SortFunc(waiting, func(a, b *v1alpha1.User) int { return cmp.Compare(a.Name, b.Name) })
	for _, u := range waiting {
		if d.noRoom() {
			return
		}
		at := memberAt{u.Name, m.Workspace}
		c, _ := d.change(at, nil, d.parts(m.Workspace, u))
		switch p := d.placesOf(u.Name); {
		case p.full():
			d.crowded[u.Name] = true
		case len(c.Extra) > maxExtra:
			d.divided.add(u.Name)
		default:
			d.members++
			d.places[u.Name] = p.and(1)
			d.decide(at, c)
		}
	}
}

// noRoom reports, and records, that the Organization has no room for anybody new.
func (d *deciding) noRoom() bool {
	switch {
	case d.members >= MaxGroupMembers:
		d.left = true
	case d.waiting() >= maxPendingGrants || d.Full():
		d.more = true
	default:
		return false
	}
	return true
}

// placesOf returns the Memberships of a User, with those that the Organization has accepted.
func (d *deciding) placesOf(user string) Places {
	p, ok := d.places[user]
	if !ok {
		p = d.Places(user).and(d.accepted[user])
		d.places[user] = p
	}
	return p
}

func (d *deciding) decide(at memberAt, c v1alpha1.MembershipChange) {
	d.decided, d.replaced[at] = append(d.decided, c), true
}

// waiting is the number of changes that wait to be carried out, the new ones included.
func (d *deciding) waiting() int { return len(d.Organization.Spec.MembershipChanges) + len(d.decided) }

// changes returns spec.membershipChanges with the new ones.
func (d *deciding) changes() []v1alpha1.MembershipChange {
	before := d.Organization.Spec.MembershipChanges
	if len(d.decided) == 0 {
		return before
	}
	kept := slices.DeleteFunc(slices.Clone(before), func(c v1alpha1.MembershipChange) bool {
		return d.replaced[memberAt{c.User, c.Workspace}]
	})
	return append(kept, d.decided...)
}

func (d *deciding) problems() (problems []string) {
	if n := len(d.crowded); n > 0 {
		named := slices.Sorted(maps.Keys(d.crowded))
		problems = append(problems, fmt.Sprintf(
			"groups let people in up to %d places, %d of them in the organizations that one person has made: %s, %d in all",
			maxPlacesByGroup, maxPlacesByMaker, strings.Join(named[:min(n, namedProblems)], ", "), n))
	}
	if d.left {
		problems = append(problems, fmt.Sprintf("the groups of an organization let in at most %d; others are in them", MaxGroupMembers))
	}
	if t := d.divided; t.n > 0 {
		problems = append(problems, fmt.Sprintf("a membership has too many parts: %s, %d in all", strings.Join(t.named, ", "), t.n))
	}
	return problems
}

// countByGroup counts the Memberships with a part by a group.
func countByGroup(memberships []*v1alpha1.Membership) (n int) {
	for _, m := range memberships {
		if HasGroupPart(m) {
			n++
		}
	}
	return n
}

// HasGroupPart reports whether a group gives a part of a Membership.
func HasGroupPart(m *v1alpha1.Membership) bool {
	return slices.ContainsFunc(ExtrasOf(m), partByGroup)
}

// parts returns what the mappings of a place give to a User.
func (d *deciding) parts(workspace string, u *v1alpha1.User) (parts []v1alpha1.MembershipExtra) {
	for _, m := range d.at[workspace] {
		if x, ok := d.part(m, m.Role, u); ok {
			parts = append(parts, x)
		}
	}
	return parts
}

// part returns what a mapping gives to a User, with a role; ok is false if that is nothing.
func (d *deciding) part(m mapped, role v1alpha1.Role, u *v1alpha1.User) (x v1alpha1.MembershipExtra, ok bool) {
	if !hasGroup(u.Spec.Groups, m.hash) {
		return x, false
	}
	end := groupsEnd(u.Spec.Groups, d.MaxAge)
	return v1alpha1.MembershipExtra{Source: GroupSource(m.ID), Role: role, ExpiresAt: &end}, !Ended(&end, d.Now)
}

// groupsEnd is when groups cease to count.
func groupsEnd(g *v1alpha1.UserGroups, maxAge time.Duration) metav1.Time {
	return metav1.NewTime(g.IssuedAt.Add(maxAge).UTC().Truncate(time.Second))
}

// renewed reports whether newer credentials move the end of a part to another one.
func renewed(x v1alpha1.MembershipExtra, end metav1.Time, maxAge time.Duration) bool {
	return x.ExpiresAt == nil || x.ExpiresAt.After(end.Time) || end.Sub(x.ExpiresAt.Time) >= maxAge/8
}

// change returns the change of a Membership, or of none, that gives it these parts; ok is false if it has them.
func (d *deciding) change(
	at memberAt, m *v1alpha1.Membership, wanted []v1alpha1.MembershipExtra,
) (c v1alpha1.MembershipChange, ok bool) {
	if m != nil {
		if e := EffectiveAt(m, d.Now); e != nil {
			c = given(e)
		}
		c.UID, c.Generation = m.UID, m.Generation
	}
	has := c.Extra
	c.Extra = slices.DeleteFunc(slices.Clone(has), partByGroup)
	for _, w := range wanted {
		for _, x := range has {
			if x.Source == w.Source && x.Role == w.Role && !renewed(x, *w.ExpiresAt, d.MaxAge) {
				w = x
			}
		}
		c.Extra = append(c.Extra, w)
	}
	c.User, c.Workspace, c.RequestedAt = at.user, at.workspace, DecisionTime(d.Now)
	return c, len(c.Extra) != len(has) || moreExtra(has, c.Extra)
}

package tenancy

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

const (
	// MaxGroupMappings is the number of mappings of groups that an Organization can have.
	MaxGroupMappings = 50
	// MaxGroupMembers is the number of Memberships of an Organization that groups can give a part: one mapping of a large
	// group must not fill the store.
	MaxGroupMembers = 5000
	// maxPlacesByGroup is the number of Memberships of a person above which groups let them in nowhere else. The others are
	// for what people give: nobody can use up somebody's Memberships by mapping a group of theirs many times.
	maxPlacesByGroup = MaxMemberships / 2
	// namedProblems is the number of people that one problem names.
	namedProblems = 5
	// MaxGroups is the number of groups of a person that the hub takes note of.
	MaxGroups = 1000
	// maxGroupName is the length of the name of a group that a mapping can have, in bytes.
	maxGroupName = 512
	// MinGroupMaxAge is the lowest --group-max-age.
	MinGroupMaxAge = time.Minute
	// CauseGroupMapped is the cause of a refusal of a mapping of a group that has another role there.
	CauseGroupMapped = "GroupMapped"
)

// GroupSource is the source of what a mapping gives.
func GroupSource(id string) string { return groupSource + id }

// HashGroup returns the hash by which a User has a group.
func HashGroup(group string) v1alpha1.GroupHash {
	sum := sha256.Sum256([]byte(group))
	return v1alpha1.GroupHash(base64.RawURLEncoding.EncodeToString(sum[:16]))
}

// HeardGroups is what a credential says of the groups of a person.
type HeardGroups struct {
	// Groups have the prefix of the hub.
	Groups []string
	// IssuedAt is the time of issue of the credential. It is zero for one that says what is so now.
	IssuedAt time.Time
}

// Learn returns spec.groups of a User after a credential, or nil if it says nothing new: it is not newer
// than the newest that the hub has heard of. What is so now is written again only where it differs, or after
// an eighth of maxAge.
func (h HeardGroups) Learn(held *v1alpha1.UserGroups, now time.Time, maxAge time.Duration) *v1alpha1.UserGroups {
	at := h.IssuedAt
	if at.IsZero() || at.After(now) {
		at = now
	}
	at = at.UTC().Truncate(time.Second)
	if !h.IssuedAt.IsZero() && held != nil && !at.After(held.IssuedAt.Time) {
		return nil
	}
	hashes := make([]v1alpha1.GroupHash, 0, min(len(h.Groups), MaxGroups))
	for _, group := range h.Groups[:min(len(h.Groups), MaxGroups)] {
		hashes = append(hashes, HashGroup(group))
	}
	slices.Sort(hashes)
	hashes = slices.Compact(hashes)
	if h.IssuedAt.IsZero() {
		switch {
		case held == nil && len(hashes) == 0:
			return nil
		case held == nil:
		case slices.Equal(held.Hashes, hashes) && (len(hashes) == 0 || at.Sub(held.IssuedAt.Time) < maxAge/8):
			return nil
		case at.Before(held.IssuedAt.Time):
			at = held.IssuedAt.Time
		}
	}
	return &v1alpha1.UserGroups{IssuedAt: metav1.NewTime(at), Hashes: hashes}
}

// LosesGroup reports whether a group is in the first and not in the second.
func LosesGroup(before, after *v1alpha1.UserGroups) bool {
	return before != nil && slices.ContainsFunc(before.Hashes, func(h v1alpha1.GroupHash) bool { return !hasGroup(after, h) })
}

func hasGroup(g *v1alpha1.UserGroups, hash v1alpha1.GroupHash) bool {
	if g == nil {
		return false
	}
	_, ok := slices.BinarySearch(g.Hashes, hash)
	return ok
}

// CheckGroup validates the name of a group in a mapping. The error names field.
func CheckGroup(field, group string) error {
	switch {
	case group == "" || len(group) > maxGroupName:
		return errs.InvalidField(field, "must be the name of a group, with the prefix that the hub gives it, of 1 to 512 bytes")
	case strings.HasPrefix(group, "system:"):
		return errs.InvalidField(field, "must not begin with system:")
	case strings.TrimSpace(group) != group || strings.ContainsFunc(group, unprintable):
		return errs.InvalidField(field, "must have no control character, and begin and end with something visible")
	}
	return nil
}

// MapGroup returns spec.groups of the Organization with a new mapping, and the mapping, which is an earlier one
// if that gives the same.
func MapGroup(o *v1alpha1.Organization, m v1alpha1.GroupMapping) ([]v1alpha1.GroupMapping, v1alpha1.GroupMapping, error) {
	for _, other := range o.Spec.Groups {
		switch {
		case other.ID == m.ID && (other.Group != m.Group || other.Workspace != m.Workspace || other.Role != m.Role):
			return nil, other, errs.New(errs.Conflict, "another mapping was made with this Idempotency-Key")
		case other.Group != m.Group || other.Workspace != m.Workspace:
		case other.Role == m.Role:
			return o.Spec.Groups, other, nil
		default:
			message := "the group is mapped here already, as " + string(other.Role) + "; remove the mapping " + other.ID + " first"
			return nil, other, errs.New(errs.AlreadyExists, message, errs.Cause{Type: CauseGroupMapped, Field: other.ID, Message: message})
		}
	}
	err := checkQuota(MaxGroupMappings, len(o.Spec.Groups), "this organization has %d of at most %d mappings of groups; remove one that is not needed any more")
	if err != nil {
		return nil, m, err
	}
	return append(slices.Clone(o.Spec.Groups), m), m, nil
}

// UnmapGroup takes a mapping from an Organization, and what it gives from the changes that are not carried out yet: nobody
// gets in by it after its removal.
func UnmapGroup(o *v1alpha1.Organization, id string) {
	o.Spec.Groups = slices.DeleteFunc(slices.Clone(o.Spec.Groups), func(m v1alpha1.GroupMapping) bool { return m.ID == id })
	var left []v1alpha1.MembershipChange
	for _, c := range o.Spec.MembershipChanges {
		extra := slices.DeleteFunc(slices.Clone(c.Extra), func(x v1alpha1.MembershipExtra) bool { return x.Source == GroupSource(id) })
		if len(extra) < len(c.Extra) {
			if c.Extra = extra; Removes(c) && c.UID == "" {
				continue
			}
		}
		left = append(left, c)
	}
	o.Spec.MembershipChanges = left
}

// MappingOf returns the mapping of an Organization with that ID.
func MappingOf(o *v1alpha1.Organization, id string) (v1alpha1.GroupMapping, bool) {
	i := slices.IndexFunc(o.Spec.Groups, func(m v1alpha1.GroupMapping) bool { return m.ID == id })
	if i < 0 {
		return v1alpha1.GroupMapping{}, false
	}
	return o.Spec.Groups[i], true
}

// Grouped is what the mappings of an Organization decide by.
type Grouped struct {
	Organization *v1alpha1.Organization
	// Memberships are all of the Organization.
	Memberships []*v1alpha1.Membership
	// With returns the Users who have a group, and User finds one.
	With func(v1alpha1.GroupHash) []*v1alpha1.User
	User func(name string) (*v1alpha1.User, bool)
	// Workspace reports whether a Workspace of the Organization exists.
	Workspace func(uuid string) bool
	// Count returns the number of Memberships of a User.
	Count func(user string) int
	// Full reports whether the store has no room for anything new.
	Full func() bool
	// MaxAge is for how long the groups of a person count after the issue of the credential that says them.
	MaxAge time.Duration
	Now    time.Time
}

// memberAt is what a Membership is of.
type memberAt struct{ user, workspace string }

func (a memberAt) compare(b memberAt) int {
	return cmp.Or(cmp.Compare(a.user, b.user), cmp.Compare(a.workspace, b.workspace))
}

// Decide returns spec.membershipChanges of the Organization with what has to change so that each Membership has the
// parts that groups give, and no other ones of groups. A part ends by time when the credential that says the group is
// too old; newer credentials move that end, but not for less than an eighth of MaxAge. People who are not active keep what
// they have. problems says whom a group cannot let in; more is true if not all changes had room.
func (g Grouped) Decide() (changes []v1alpha1.MembershipChange, problems []string, more bool) {
	held := map[memberAt]*v1alpha1.Membership{}
	for _, m := range g.Memberships {
		if m.DeletionTimestamp.IsZero() {
			held[memberAt{m.Spec.UserRef.Name, WorkspaceUUID(m)}] = m
		}
	}
	wanted := g.wanted(held)
	places := make([]memberAt, 0, len(wanted))
	for at := range wanted {
		places = append(places, at)
	}
	slices.SortFunc(places, memberAt.compare)
	changes = g.Organization.Spec.MembershipChanges
	members := countByGroup(g.Memberships)
	var crowded, divided, left []string
	for _, at := range places {
		m := held[at]
		c, ok := g.change(at, m, wanted[at])
		pending, waits := ChangeOf(g.Organization, at.user, at.workspace)
		room := maxPendingGrants
		if m != nil && ok && ReducesMembership(m, c) {
			room = maxPendingChanges
		}
		switch {
		case !ok:
		case waits && ChangeApplies(pending, m):
			if m == nil {
				members++
			}
		case m == nil && g.Count(at.user) >= maxPlacesByGroup:
			crowded = append(crowded, at.user)
		case m == nil && members >= MaxGroupMembers:
			left = append(left, at.user)
		case len(c.Extra) > maxExtra:
			divided = append(divided, at.user)
		case len(changes) >= room || m == nil && g.Full():
			more = true
		default:
			if m == nil {
				members++
			}
			changes = append(without(changes, at.user, at.workspace), c)
		}
	}
	for _, p := range []struct {
		people []string
		text   string
	}{
		{crowded, "groups let people in up to 500 places"},
		{left, "the groups of an organization let in at most 5000"},
		{divided, "a membership has too many parts"},
	} {
		if n := len(p.people); n > 0 {
			problems = append(problems, fmt.Sprintf("%s: %s, %d in all", p.text, strings.Join(p.people[:min(n, namedProblems)], ", "), n))
		}
	}
	return changes, problems, more
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

// wanted returns the parts that groups give to active people, and an empty list for other places where they have one.
func (g Grouped) wanted(held map[memberAt]*v1alpha1.Membership) map[memberAt][]v1alpha1.MembershipExtra {
	wanted := map[memberAt][]v1alpha1.MembershipExtra{}
	for _, mapping := range g.Organization.Spec.Groups {
		if mapping.Workspace != "" && !g.Workspace(mapping.Workspace) {
			continue
		}
		for _, u := range g.With(HashGroup(mapping.Group)) {
			if x, ok := g.part(mapping, mapping.Role, u); ok && Active(u) {
				at := memberAt{u.Name, mapping.Workspace}
				wanted[at] = append(wanted[at], x)
			}
		}
	}
	for at, m := range held {
		u, ok := g.User(at.user)
		if !ok || !Active(u) {
			continue
		}
		for _, x := range ExtrasOf(m) {
			id, ok := GroupOf(x.Source)
			if !ok {
				continue
			}
			mapping, ok := MappingOf(g.Organization, id)
			if _, there := wanted[at]; !there {
				wanted[at] = nil
			}
			// The maker of a Workspace whom a group lets into the Organization has such a part in the Workspace.
			if ok && mapping.Workspace != at.workspace && mapping.Workspace == "" {
				if x, ok := g.part(mapping, x.Role, u); ok {
					wanted[at] = append(wanted[at], x)
				}
			}
		}
	}
	return wanted
}

// part returns what a mapping gives to a User; ok is false if that is nothing.
func (g Grouped) part(mapping v1alpha1.GroupMapping, role v1alpha1.Role, u *v1alpha1.User) (x v1alpha1.MembershipExtra, ok bool) {
	if !hasGroup(u.Spec.Groups, HashGroup(mapping.Group)) {
		return x, false
	}
	end := metav1.NewTime(u.Spec.Groups.IssuedAt.Add(g.MaxAge).UTC().Truncate(time.Second))
	return v1alpha1.MembershipExtra{Source: GroupSource(mapping.ID), Role: role, ExpiresAt: &end}, !Ended(&end, g.Now)
}

// change returns the change of a Membership, or of none, that gives it these parts; ok is false if it has them.
func (g Grouped) change(at memberAt, m *v1alpha1.Membership, wanted []v1alpha1.MembershipExtra) (c v1alpha1.MembershipChange, ok bool) {
	if m != nil {
		if e := EffectiveAt(m, g.Now); e != nil {
			c = given(e)
		}
		c.UID, c.Generation = m.UID, m.Generation
	}
	has := c.Extra
	c.Extra = slices.DeleteFunc(slices.Clone(has), partByGroup)
	for _, w := range wanted {
		for _, x := range has {
			if x.Source == w.Source && x.Role == w.Role && x.ExpiresAt != nil && !x.ExpiresAt.After(w.ExpiresAt.Time) &&
				w.ExpiresAt.Sub(x.ExpiresAt.Time) < g.MaxAge/8 {
				w = x
			}
		}
		c.Extra = append(c.Extra, w)
	}
	c.User, c.Workspace, c.RequestedAt = at.user, at.workspace, metav1.NewMicroTime(g.Now.Truncate(time.Microsecond))
	return c, len(c.Extra) != len(has) || moreExtra(has, c.Extra)
}

// LetIn counts the active people whom a mapping would let in now.
func LetIn(with []*v1alpha1.User, now time.Time, maxAge time.Duration) (people int) {
	for _, u := range with {
		if Active(u) && u.Spec.Groups != nil && now.Before(u.Spec.Groups.IssuedAt.Add(maxAge)) {
			people++
		}
	}
	return people
}

// ByGroupAlone returns the source of what entitles a person in the Organization where a group alone does, or an empty
// text. may is the rule, which they satisfy.
func (s Scope) ByGroupAlone(o *v1alpha1.Organization, inOrg *v1alpha1.Membership, now time.Time, may func(Scope) error) (source string) {
	if inOrg == nil {
		return ""
	}
	e := EffectiveAt(inOrg, now)
	if e == nil || may(s.At(o, withoutGroups(inOrg), nil, now)) == nil {
		return ""
	}
	role := v1alpha1.Role("")
	for _, x := range ExtrasOf(e) {
		if _, group := GroupOf(x.Source); group && Lowers(x.Role, role) {
			source, role = x.Source, x.Role
		}
	}
	return source
}

package tenancy

import (
	"crypto/sha256"
	"encoding/base64"
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
	// maxPlacesByGroup is the number of Memberships of a person that groups can give a part. The others are for what
	// people give: nobody can use up somebody's Memberships by mapping a group of theirs many times.
	maxPlacesByGroup = MaxMemberships / 2
	// maxPlacesByMaker is the part of these that can be in the Organizations of one maker: nobody can use up the places of
	// a person by mapping a group in many Organizations of their own.
	maxPlacesByMaker = maxPlacesByGroup / 2
	// namedProblems is the number of people that one problem names.
	namedProblems = 5
	// MaxGroups is the number of groups of a person that the hub takes note of.
	MaxGroups = 1000
	// maxGroupName is the length of the name of a group that a mapping can have, in bytes.
	maxGroupName = 512
	// MinGroupMaxAge is the lowest --group-max-age.
	MinGroupMaxAge = time.Minute
	// issuerAhead is how far the clock of an identity provider may be ahead of kcp's. Its times order its credentials, so
	// that an older one never counts as newer while kcp's clock is behind. Groups count for so much longer then.
	issuerAhead = 5 * time.Minute
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
	if latest := now.Add(issuerAhead); at.IsZero() {
		at = now
	} else if at.After(latest) {
		at = latest
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

// ChangedGroups returns the groups that can let a person in or out after a change of their User. Newer credentials that say
// the same groups as before change none: they only renew parts, see GroupPartDue.
func ChangedGroups(before, after *v1alpha1.User, now time.Time, maxAge time.Duration) (changed []v1alpha1.GroupHash) {
	was, is := before.Spec.Groups, after.Spec.Groups
	all := Active(before) != Active(after) || !heardOf(was, now, maxAge)
	for _, g := range []*v1alpha1.UserGroups{was, is} {
		if g == nil {
			continue
		}
		for _, h := range g.Hashes {
			if all || hasGroup(was, h) != hasGroup(is, h) {
				changed = append(changed, h)
			}
		}
	}
	return changed
}

// GroupPartDue reports whether the groups of a person move the end of a part of their Membership.
func GroupPartDue(m *v1alpha1.Membership, g *v1alpha1.UserGroups, maxAge time.Duration) bool {
	return g != nil && slices.ContainsFunc(ExtrasOf(m), func(x v1alpha1.MembershipExtra) bool {
		return partByGroup(x) && renewed(x, groupsEnd(g, maxAge), maxAge)
	})
}

func hasGroup(g *v1alpha1.UserGroups, hash v1alpha1.GroupHash) bool {
	if g == nil {
		return false
	}
	_, ok := slices.BinarySearch(g.Hashes, hash)
	return ok
}

// heardOf reports whether the groups of a person count: a credential said them less than maxAge ago.
func heardOf(g *v1alpha1.UserGroups, now time.Time, maxAge time.Duration) bool {
	if g == nil {
		return false
	}
	end := groupsEnd(g, maxAge)
	return !Ended(&end, now)
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

// CheckMapper refuses the mapping of a group by somebody who is in it, according to their newest credential, and whose right
// to map groups ends at until: they would prolong it.
func CheckMapper(u *v1alpha1.User, group string, until *metav1.Time) error {
	if until == nil || !hasGroup(u.Spec.Groups, HashGroup(group)) {
		return nil
	}
	message := "your right to do this is not for good, and a group that you are in would give you what lasts longer: ask another admin"
	return errs.New(errs.Forbidden, message, errs.Cause{Type: CauseOwnRight, Field: "group", Message: message})
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
	return first(o.Spec.Groups, func(m v1alpha1.GroupMapping) bool { return m.ID == id })
}

// LetIn counts the active people whom a mapping would let in now.
func LetIn(with []*v1alpha1.User, now time.Time, maxAge time.Duration) (people int) {
	for _, u := range with {
		if Active(u) && heardOf(u.Spec.Groups, now, maxAge) {
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

package tenancy

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

const (
	// SourceHand is the source of the part of a Membership that was given by hand. Effective puts that part
	// first in spec.extra; it is never stored there.
	SourceHand = "hand"
	// groupSource and requestSource are the prefixes of the other sources.
	groupSource   = "group:"
	requestSource = "request:"
)

// RequestSource is the source of what an AccessRequest gave.
func RequestSource(id string) string { return requestSource + id }

// RequestOf returns the ID of the AccessRequest of a source; ok is false if it is another one.
func RequestOf(source string) (id string, ok bool) { return strings.CutPrefix(source, requestSource) }

// GroupOf returns the ID of the mapping of a source; ok is false if it is another one.
func GroupOf(source string) (id string, ok bool) { return strings.CutPrefix(source, groupSource) }

// HandOf returns the part of a Membership that was given by hand. It has neither a role nor sudo if nothing
// was, or if Effective found that it has ended.
func HandOf(m *v1alpha1.Membership) v1alpha1.MembershipExtra {
	if len(m.Spec.Extra) > 0 && m.Spec.Extra[0].Source == SourceHand {
		return m.Spec.Extra[0]
	}
	return v1alpha1.MembershipExtra{Source: SourceHand, Role: m.Spec.Role, Sudo: m.Spec.Sudo, ExpiresAt: m.Spec.ExpiresAt}
}

// ByHand reports whether a part of a Membership was given by hand.
func ByHand(m *v1alpha1.Membership) bool { return HandOf(m).Role != "" || m.Spec.Manager }

// ExtrasOf returns the parts of a Membership that were not given by hand.
func ExtrasOf(m *v1alpha1.Membership) []v1alpha1.MembershipExtra {
	extra := m.Spec.Extra
	if len(extra) > 0 && extra[0].Source == SourceHand {
		extra = extra[1:]
	}
	if len(extra) == 0 {
		return nil
	}
	return extra
}

// EffectiveAt returns what a Membership gives at a time, or nil if that is nothing. It has the highest role
// of the living parts, the end of that role, and sudo if one of them has it; spec.extra has these parts, that
// given by hand first. A Membership without other parts is returned itself.
func EffectiveAt(m *v1alpha1.Membership, now time.Time) *v1alpha1.Membership {
	return Effective(m, func(end *metav1.Time) bool { return Ended(end, now) })
}

// Effective is EffectiveAt with a func that reports whether a part with this end has ended.
func Effective(m *v1alpha1.Membership, ended func(end *metav1.Time) bool) *v1alpha1.Membership {
	if len(m.Spec.Extra) == 0 {
		if ended(m.Spec.ExpiresAt) {
			return nil
		}
		return m
	}
	e, hand := *m, HandOf(m)
	if ended(hand.ExpiresAt) {
		hand = v1alpha1.MembershipExtra{Source: SourceHand}
		e.Spec.Manager, e.Spec.Roles = false, nil
	}
	e.Spec.Role, e.Spec.Sudo, e.Spec.ExpiresAt = hand.Role, hand.Sudo, hand.ExpiresAt
	parts := make([]v1alpha1.MembershipExtra, 1, len(m.Spec.Extra)+1)
	parts[0] = hand
	for _, x := range ExtrasOf(m) {
		if ended(x.ExpiresAt) {
			continue
		}
		nothing := len(parts) == 1 && hand.Role == "" && !e.Spec.Manager
		switch higher := x.Role.AtLeast(v1alpha1.RoleViewer) && Lowers(x.Role, e.Spec.Role); {
		case higher, nothing:
			e.Spec.ExpiresAt = x.ExpiresAt
		case x.Role == e.Spec.Role && endsLater(x.ExpiresAt, e.Spec.ExpiresAt):
			e.Spec.ExpiresAt = x.ExpiresAt
		}
		e.Spec.Role, e.Spec.Sudo = higherRole(e.Spec.Role, x.Role), e.Spec.Sudo || x.Sudo
		parts = append(parts, x)
	}
	if e.Spec.Extra = parts; len(parts) == 1 && !ByHand(&e) {
		return nil
	}
	return &e
}

// higherRole returns the higher one of two roles.
func higherRole(a, b v1alpha1.Role) v1alpha1.Role {
	if a == "" || b != "" && b.AtLeast(a) {
		return b
	}
	return a
}

// HighestRole returns the highest role of all parts of a Membership, whether they have ended or not.
func HighestRole(m *v1alpha1.Membership) v1alpha1.Role {
	role := m.Spec.Role
	for _, x := range m.Spec.Extra {
		role = higherRole(role, x.Role)
	}
	return role
}

// Ends returns the ends by time of the parts of a Membership, in no order.
func Ends(m *v1alpha1.Membership) (ends []*metav1.Time) {
	if hand := HandOf(m); hand.ExpiresAt != nil {
		ends = append(ends, hand.ExpiresAt)
	}
	for _, x := range ExtrasOf(m) {
		if x.ExpiresAt != nil {
			ends = append(ends, x.ExpiresAt)
		}
	}
	return ends
}

// withoutGroups returns what a Membership gives apart from groups of the identity provider.
func withoutGroups(m *v1alpha1.Membership) *v1alpha1.Membership {
	if m == nil || len(m.Spec.Extra) == 0 {
		return m
	}
	c := m.DeepCopy()
	c.Spec.Extra = slices.DeleteFunc(c.Spec.Extra, partByGroup)
	return c
}

// byHandAlone returns a Membership without the parts that requests and groups give.
func byHandAlone(m *v1alpha1.Membership) *v1alpha1.Membership {
	if m == nil || len(m.Spec.Extra) == 0 {
		return m
	}
	c, hand := m.DeepCopy(), HandOf(m)
	c.Spec.Role, c.Spec.Sudo, c.Spec.ExpiresAt, c.Spec.Extra = hand.Role, hand.Sudo, hand.ExpiresAt, nil
	return c
}

// partByGroup reports whether a group gives a part of a Membership.
func partByGroup(x v1alpha1.MembershipExtra) bool {
	_, group := GroupOf(x.Source)
	return group
}

// ByGroup reports whether a Membership, as Effective returns it, has its role by a group of the identity provider alone.
func ByGroup(m *v1alpha1.Membership) bool {
	group := false
	for _, x := range m.Spec.Extra {
		if x.Role == "" || x.Role != m.Spec.Role {
			continue
		}
		if group = partByGroup(x); !group {
			return false
		}
	}
	return group
}

// CauseGroup is the cause of a refusal to remove somebody whom a mapping of a group lets in.
const CauseGroup = "Group"

// byMapping returns a cause for each mapping of a group that gives a part of a Membership and would give it again after a
// DELETE. What the maker of a Workspace has there by a mapping of the Organization is none: it goes with that mapping, but
// nothing gives it twice.
func byMapping(o *v1alpha1.Organization, user, workspace string, extra []v1alpha1.MembershipExtra) (causes []errs.Cause) {
	for _, x := range extra {
		id, ok := GroupOf(x.Source)
		if m, known := MappingOf(o, id); ok && (!known || m.Workspace == workspace) {
			causes = append(causes, errs.Cause{Type: CauseGroup, Field: id, Message: "the mapping " + id + " of a group gives user " + user + " a role here"})
		}
	}
	return causes
}

// givenByGroup refuses to remove a Membership while a group gives something. A DELETE would not end that.
func givenByGroup(user string, causes []errs.Cause) error {
	if len(causes) == 0 {
		return nil
	}
	return errs.New(errs.Conflict, "user "+user+" is here by a group of the identity provider; remove the mapping "+causes[0].Field+
		", or have them leave the group", causes...)
}

// notByHand refuses to change what nobody gave by hand.
func notByHand(user string) error {
	message := "nothing was given to user " + user + " by hand; add them with POST, or end what gives them access"
	return errs.New(errs.Conflict, message, errs.Cause{Type: CauseNotByHand, Message: message})
}

// CauseNotByHand is the cause of a refusal to change a Membership of which no part was given by hand.
const CauseNotByHand = "NotByHand"

package restore

import (
	"cmp"
	"maps"
	"slices"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// aim is what Steps have in common of which one can take what all take. part tells apart what an object has several of.
type aim struct {
	kind                         Kind
	org, workspace, object, part string
}

func aimOf(s Step) aim {
	to := aim{kind: s.Kind, org: s.Org, workspace: s.Workspace, object: s.Object}
	switch s.Kind {
	case LimitMember:
		// A removal takes all that a limit takes.
		to.kind = RemoveMember
	case EndSession:
		if s.Person != "" {
			// The end of any Session signs its person out everywhere.
			to.object, to.part = "", s.Person
		}
	case RevokeToken:
		to.part = tokenOf(s)
	case RemoveTrust:
		to.part = s.Facts.Trust
	case UseJobToken:
		to.part = s.Facts.JobToken
	case BindInvitation:
		to.part = s.Facts.Issuer + "\x00" + s.Facts.Subject
	}
	return to
}

// tokenOf is the ID of the token that a RevokeToken revokes.
func tokenOf(s Step) string { return cmp.Or(s.Facts.Rotated, s.Facts.Token) }

// fold makes few Steps of many events: their number follows from what there is, and not from how often it was changed.
// They take exactly what a Step for each event would take, one after the other.
type fold struct {
	aims  map[aim]*folded
	order []*folded
}

// folded are the Steps of one aim.
type folded struct {
	// lowered are the LimitMembers that lower the role below that of all before them, so there is one for each role at
	// most. They come first: each takes sudo and further roles that it does not name, but only from a higher role.
	lowered []Step
	// rest is what all others take. Their order does not matter.
	rest *Step
	// claims are the rejected claims of a LimitProvider.
	claims map[string]bool
}

func (f *fold) add(s Step) {
	to := aimOf(s)
	of, ok := f.aims[to]
	if !ok {
		if f.aims == nil {
			f.aims = map[aim]*folded{}
		}
		of = &folded{}
		f.aims[to], f.order = of, append(f.order, of)
	}
	of.add(s)
}

// steps returns the Steps, in the order in which their aims came.
func (f *fold) steps() (all []Step) {
	for _, of := range f.order {
		all = append(all, of.steps()...)
	}
	return all
}

func (f *folded) add(s Step) {
	if s.Kind == LimitProvider {
		if f.claims == nil {
			f.claims = map[string]bool{}
		}
		for _, c := range s.Facts.RejectedClaims {
			f.claims[c] = true
		}
	}
	switch {
	case s.Kind == RemoveMember && (f.rest == nil || f.rest.Kind == LimitMember):
		if before := f.events(); before > 0 {
			s.Events = before + 1
		}
		f.lowered, f.rest = nil, &s
	case s.Kind == LimitMember && (f.rest == nil || f.rest.Kind == LimitMember) && f.lowers(s.Facts.Role):
		f.lowered = append(f.lowered, s)
	case f.rest == nil:
		f.rest = &s
	default:
		f.rest.absorb(s)
	}
}

// lowers reports whether a role is below all that the Steps so far leave. Nobody has more than the role of an admin.
func (f *folded) lowers(role string) bool {
	lowest := string(v1alpha1.RoleAdmin)
	if n := len(f.lowered); n > 0 {
		lowest = f.lowered[n-1].Facts.Role
	}
	return belowRole(role, lowest)
}

// belowRole reports whether the first role of two Facts takes more than the second one.
func belowRole(role, than string) bool {
	switch {
	case role == "" || than == rest.NoRole:
		return false
	case than == "" || role == rest.NoRole:
		return true
	}
	return tenancy.Lowers(v1alpha1.Role(than), v1alpha1.Role(role))
}

// events is the number of events that the Steps so far stand for.
func (f *folded) events() (n int) {
	for _, s := range f.lowered {
		n += s.events()
	}
	if f.rest != nil {
		n += f.rest.events()
	}
	return n
}

func (f *folded) steps() []Step {
	last := len(f.lowered) - 1
	switch {
	case f.rest == nil:
		return f.lowered
	case f.rest.Events > 0 && f.rest.Kind == LimitProvider:
		f.rest.Facts.RejectedClaims = slices.Sorted(maps.Keys(f.claims))
	case last >= 0 && (f.rest.Facts.Roles == nil || f.lowered[last].Facts.Roles != nil):
		// One Step takes both: both take further roles from every role, or only the one that lowers it takes them.
		f.lowered[last].absorb(*f.rest)
		return f.lowered
	case last >= 0:
		// What lowers it has done so.
		f.rest.Facts.Role = ""
	}
	return append(f.lowered, *f.rest)
}

// events is the number of events that a Step stands for.
func (s Step) events() int { return max(1, s.Events) }

// absorb makes a Step take what another one of the same aim takes.
func (s *Step) absorb(o Step) {
	events := s.events() + o.events()
	if replaces(o, *s) {
		*s = o
	}
	switch s.Kind {
	case RemoveMember:
		s.Facts.Cascade = s.Facts.Cascade || o.Facts.Cascade
		s.Unanswered = s.Unanswered && o.Unanswered
	case LimitMember:
		s.Facts = lessOf(s.Facts, o.Facts)
		s.Unanswered = s.Unanswered && o.Unanswered
	case LimitOrg:
		s.Facts = narrowest(s.Facts, o.Facts)
	}
	s.Events = events
}

// replaces reports whether a Step takes all that another one of the same aim takes, and more.
func replaces(o, s Step) bool {
	switch s.Kind {
	case LimitBot:
		return belowRole(o.Facts.Role, s.Facts.Role)
	case RevokeTokens:
		return o.At.After(s.At)
	case EndSession, EndSessions:
		// One that is unanswered ends what was issued until the replay.
		return o.Unanswered && !s.Unanswered || o.Unanswered == s.Unanswered && o.At.After(s.At)
	case AdvanceSession:
		return o.Facts.Generation > s.Facts.Generation
	case EndWorkspace:
		return endsBefore(o.Facts, s.Facts)
	}
	// The first one counts, such as the answer to an Invitation, or the deletion from which a grace period is counted.
	return false
}

// endsBefore reports whether the first Facts give an end that is earlier than that of the second.
func endsBefore(a, b audit.Facts) bool {
	end, ok := endOf(a)
	other, has := endOf(b)
	return ok && (!has || end.Time.Before(other.Time))
}

// lessOf returns what two changes of a Membership leave, of which the second one does not lower the role. It takes no
// part of slices that others hold.
func lessOf(a, b audit.Facts) audit.Facts {
	if belowRole(b.Role, a.Role) {
		a.Role = b.Role
	}
	a.Sudo, a.Manager = neither(a.Sudo, b.Sudo), neither(a.Manager, b.Manager)
	a.Roles, a.Sources = inBoth(a.Roles, b.Roles), inBoth(a.Sources, b.Sources)
	if endsBefore(b, a) {
		a.ExpiresAt = b.ExpiresAt
	}
	a.Receipt = nil
	return a
}

func neither(a, b *bool) *bool {
	if b != nil && !*b {
		return b
	}
	return a
}

// inBoth returns what two lists have in common. One that is nil says nothing.
func inBoth(a, b *[]string) *[]string {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	common := slices.DeleteFunc(slices.Clone(*a), func(text string) bool { return !slices.Contains(*b, text) })
	if common == nil {
		common = []string{}
	}
	return &common
}

// narrowest returns the settings of an Organization that two changes leave.
func narrowest(a, b audit.Facts) audit.Facts {
	if b.DefaultAccess == string(v1alpha1.DefaultAccessNone) {
		a.DefaultAccess = b.DefaultAccess
	}
	if b.WorkspaceCreation == string(v1alpha1.WhoAdmin) {
		a.WorkspaceCreation = b.WorkspaceCreation
	}
	if b.CatalogEntryCreation == string(v1alpha1.WhoAdmin) {
		a.CatalogEntryCreation = b.CatalogEntryCreation
	}
	return a
}

package tenancy

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// FactKind is the kind of a fact that access follows from.
type FactKind string

// The kinds of facts. A fact holds for as long as its object does: an Organization or a Workspace that is soft-deleted
// is no fact, and no User is one who may not use the hub.
const (
	FactUser      FactKind = "user"
	FactOrg       FactKind = "org"
	FactWorkspace FactKind = "workspace"
	FactMember    FactKind = "member"
	FactBot       FactKind = "bot"
	FactToken     FactKind = "token"
)

// FactKey names a fact. Org and Workspace are UUIDs: Org is empty for a User, and Workspace for what is about the
// Organization as a whole. Subject is the name of a User or the UUID of a Bot, and Token the ID of a token of the Bot.
type FactKey struct {
	Kind                           FactKind
	Org, Workspace, Subject, Token string
}

// AccessFact is what a fact says. Roles and Sources are JSON, without which facts could not be compared.
type AccessFact struct {
	// Name is the display name of an Organization, a Workspace, a Bot or a token.
	Name          string
	Role          v1alpha1.Role
	Sudo, Manager bool
	// Roles are the further roles of a Membership, and Sources what it comes from.
	Roles, Sources string
	DefaultAccess  v1alpha1.DefaultAccess
	// ExpiresAt is the time from which on the fact gives nothing, in RFC 3339, or empty.
	ExpiresAt string
}

// HeldFact is a fact that held at a moment, and since when.
type HeldFact struct {
	FactKey
	AccessFact
	Since time.Time
}

// ended reports whether the fact gives nothing at a moment, because it has ended by time.
func (f HeldFact) ended(at time.Time) bool {
	end := f.end()
	return end != nil && !at.Before(*end)
}

func (f HeldFact) end() *time.Time {
	if end, err := time.Parse(time.RFC3339, f.ExpiresAt); err == nil {
		return &end
	}
	return nil
}

// HeldSource is a source of access, with what it came from, since when it held and its end.
type HeldSource struct {
	Source
	Sources   []string
	Since     time.Time
	ExpiresAt *time.Time
}

// HeldToken is a token of a Bot.
type HeldToken struct {
	ID, Name  string
	Since     time.Time
	ExpiresAt *time.Time
}

// Holder is somebody with access at a moment. Workspace is empty for access to the Organization itself. User or Bot is
// empty.
type Holder struct {
	Workspace, User, Bot string
	// Name is the display name of a Bot.
	Name          string
	Role          v1alpha1.Role
	Sudo, Manager bool
	Roles         []v1alpha1.RoleRef
	// Through are the sources of the access, the one in effect first.
	Through []HeldSource
	// EveryWorkspace are the sources of access to each Workspace that a member of the Organization has.
	EveryWorkspace []HeldSource
	Tokens         []HeldToken
}

// PastAccess is who had access at a moment, as far as it is known.
type PastAccess struct {
	// Since is the time from which on access is known, or zero. AsOf is the last moment up to the one that is asked for at
	// which somebody looked, or zero.
	Since, AsOf time.Time
	Active      bool
	Holders     []Holder
}

// past are the facts of an Organization at a moment.
type past struct {
	org        string
	access     v1alpha1.DefaultAccess
	active     bool
	workspaces map[string]bool
	// members has the Memberships by Workspace and User. Those of the Organization are under "".
	members map[string]map[string]HeldFact
	bots    []HeldFact
	tokens  map[string][]HeldToken
}

// HoldersAt returns, from the facts that held at a moment, everybody with access to a Workspace, or to the Organization
// and to something in it if workspace is empty. active is false if it did not exist or was soft-deleted: nobody had
// access to it. Of an Organization there is a Holder for each Membership and Bot; what follows for each Workspace from a
// Membership of the Organization is in EveryWorkspace.
func HoldersAt(facts []HeldFact, org, workspace string, at time.Time) (active bool, holders []Holder) {
	p := pastOf(facts, org, at)
	if !p.active || workspace != "" && !p.workspaces[workspace] {
		return false, nil
	}
	if workspace != "" {
		return true, inOrder(p.in(workspace, true))
	}
	for user, m := range p.members[""] {
		holders = append(holders, Holder{
			User: user, Role: m.Role, Through: []HeldSource{sourceOf(m, Source{ThroughMembership, m.Role})},
			EveryWorkspace: p.sources(user, ""),
		})
	}
	for ws := range p.workspaces {
		holders = append(holders, p.in(ws, false)...)
	}
	return true, inOrder(holders)
}

func pastOf(facts []HeldFact, org string, at time.Time) past {
	p := past{org: org, workspaces: map[string]bool{}, members: map[string]map[string]HeldFact{}, tokens: map[string][]HeldToken{}}
	for _, f := range facts {
		if f.Org != org || f.ended(at) {
			continue
		}
		switch f.Kind {
		case FactOrg:
			p.active, p.access = true, f.DefaultAccess
		case FactWorkspace:
			p.workspaces[f.Workspace] = true
		case FactMember:
			if p.members[f.Workspace] == nil {
				p.members[f.Workspace] = map[string]HeldFact{}
			}
			p.members[f.Workspace][f.Subject] = f
		case FactBot:
			p.bots = append(p.bots, f)
		case FactToken:
			p.tokens[f.Subject] = append(p.tokens[f.Subject], HeldToken{ID: f.Token, Name: f.Name, Since: f.Since, ExpiresAt: f.end()})
		case FactUser:
		}
	}
	return p
}

// sources are those of the access of a User to a Workspace, or to one without a Membership of the User if it is empty.
func (p past) sources(user, workspace string) (all []HeldSource) {
	inOrg, member := p.members[""][user]
	inWorkspace, there := p.members[workspace][user]
	var rows []v1alpha1.MembershipIndexEntry
	if member {
		rows = append(rows, v1alpha1.MembershipIndexEntry{OrgUUID: p.org, Role: inOrg.Role})
	}
	if there && workspace != "" {
		rows = append(rows, v1alpha1.MembershipIndexEntry{OrgUUID: p.org, WorkspaceUUID: workspace, Role: inWorkspace.Role})
	}
	// No Workspace has this name, and none has an empty one.
	for s := range WorkspaceSources(rows, p.org, cmp.Or(workspace, "-"), p.access) {
		from := inOrg
		if s.Through == ThroughMembership {
			from = inWorkspace
		}
		all = append(all, sourceOf(from, s))
	}
	return all
}

func sourceOf(f HeldFact, s Source) HeldSource {
	h := HeldSource{Source: s, Since: f.Since, ExpiresAt: f.end()}
	// What the hub wrote can be read.
	_ = json.Unmarshal([]byte(f.Sources), &h.Sources)
	return h
}

// in are the Holders of a Workspace: everybody, or those with a Membership of the Workspace and its Bots.
func (p past) in(workspace string, everybody bool) (holders []Holder) {
	users := map[string]bool{}
	for user := range p.members[workspace] {
		users[user] = true
	}
	if everybody {
		for user := range p.members[""] {
			users[user] = true
		}
	}
	for user := range users {
		m := p.members[workspace][user]
		h := Holder{Workspace: workspace, User: user, Sudo: m.Sudo, Manager: m.Manager, Through: p.sources(user, workspace)}
		_ = json.Unmarshal([]byte(m.Roles), &h.Roles)
		if len(h.Through) > 0 {
			h.Role = h.Through[0].Role
		}
		if h.Role != "" || h.Manager {
			holders = append(holders, h)
		}
	}
	for _, b := range p.bots {
		if b.Workspace == workspace {
			holders = append(holders, Holder{
				Workspace: workspace, Bot: b.Subject, Name: b.Name, Role: b.Role, Tokens: p.tokens[b.Subject],
				Through: []HeldSource{sourceOf(b, Source{ThroughBot, b.Role})},
			})
		}
	}
	return holders
}

// inOrder orders Holders: by Workspace, people before Bots, by name.
func inOrder(holders []Holder) []Holder {
	slices.SortFunc(holders, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(a.Workspace, b.Workspace), cmp.Compare(a.Bot, b.Bot), cmp.Compare(a.User, b.User))
	})
	for _, h := range holders {
		slices.SortFunc(h.Tokens, func(a, b HeldToken) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
	}
	return holders
}

package audit

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Query selects events of one Organization, of one Workspace in it, or of the whole hub. Only OfOrg, RescuesOf,
// OfWorkspace and OfPlatform make one: the tenant is no filter that could be left out or replaced.
type Query struct {
	org, workspace    string
	platform, rescues bool

	Filter
	// Limit is the maximum number of events.
	Limit int
	// After is where the last page ended. It is nil for the newest events.
	After *Position
}

// Filter selects among the events that a query is about. Empty fields select all.
type Filter struct {
	// Since and Until limit the time: an event at Since is in the result, one at Until is not.
	Since, Until time.Time
	// Actor is the name of a User or the UUID of a bot. Workspace is a UUID.
	Actor, Workspace, Object string
	// Action is a part of an action.
	Action string
	// MinCode and MaxCode limit the code. They are zero for all.
	MinCode, MaxCode int
}

// OfOrg returns the query for events of an Organization.
func OfOrg(org string, f Filter) Query { return Query{org: org, Filter: f} }

// ActionRescue is the action of events by which a platform admin makes somebody admin of an Organization.
const ActionRescue = "POST /api/admin/orgs/{org}/admins"

// RescuesOf returns the query for the events of an Organization with the action ActionRescue, which all its members are
// shown.
func RescuesOf(org string, f Filter) Query { return Query{org: org, rescues: true, Filter: f} }

// OfWorkspace returns the query for events of a Workspace of an Organization.
func OfWorkspace(org, workspace string, f Filter) Query {
	return Query{org: org, workspace: workspace, Filter: f}
}

// OfPlatform returns the query for all events, those that admins of tenants are not shown included. org limits it to
// an Organization, unless it is empty.
func OfPlatform(org string, f Filter) Query { return Query{org: org, platform: true, Filter: f} }

// Tenant returns the UUIDs of the Organization and of the Workspace that the query is about, empty for all. ok is false
// for a query that nobody made.
func (q Query) Tenant() (org, workspace string, ok bool) {
	return q.org, q.workspace, q.org != "" || q.platform
}

// Outsiders reports whether the query selects events of actors without a role in their Organization.
func (q Query) Outsiders() bool { return q.platform }

// Rescues reports whether the query selects events with the action ActionRescue only.
func (q Query) Rescues() bool { return q.rescues }

// Selects reports whether an event belongs to what the query is about and may be shown to those who ask.
func (q Query) Selects(e Event) bool {
	return (e.Org == q.org || q.org == "" && q.platform) && (!e.Outsider || q.platform) &&
		(!q.rescues || e.Action == ActionRescue) &&
		(q.workspace == "" || e.Workspace == q.workspace) && (q.Workspace == "" || e.Workspace == q.Workspace)
}

// Page is a part of the events that a query selects, the newest first. It can have fewer than the limit although
// there are more.
type Page struct {
	Events []Event
	// Next is where the next page begins. It is nil on the last one.
	Next *Position
}

// Position is the place of an event in the order of all events of all replicas.
type Position struct {
	Time         time.Time
	Replica, Log string
	Seq          uint64
}

// positionTime is the form of the time in a Position. Databases keep microseconds.
const positionTime = "2006-01-02T15:04:05.000000Z"

// String is the form that ParsePosition reads.
func (p Position) String() string {
	return fmt.Sprintf("%s/%s/%s/%d", p.Time.UTC().Format(positionTime), p.Replica, p.Log, p.Seq)
}

// ParsePosition reads a position. ok is false for any text that String does not return.
func ParsePosition(text string) (p Position, ok bool) {
	parts := strings.Split(text, "/")
	if len(parts) != 4 {
		return Position{}, false
	}
	at, err := time.Parse(positionTime, parts[0])
	if err != nil || at.Year() < 1970 || parts[2] != Rights && parts[2] != Writes {
		return Position{}, false
	}
	p = Position{Time: at, Replica: parts[1], Log: parts[2]}
	if strings.ContainsFunc(p.Replica, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '2' || r > '7') }) {
		return Position{}, false
	}
	p.Seq, err = strconv.ParseUint(parts[3], 10, 63)
	return p, err == nil && p.String() == text
}

// Freshness says up to when the database has all events of a replica.
type Freshness struct {
	Replica string
	AsOf    time.Time
}

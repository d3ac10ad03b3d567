package usage

import "time"

// Workspace is a Workspace of an Organization, by UUIDs.
type Workspace struct{ Org, UUID string }

// Requests is what a process of the hub has counted in a Workspace since the start of an interval.
type Requests struct {
	Reads, Writes, Watches, BytesOut int64
	// Streamed is the time for which streams were open, added up.
	Streamed time.Duration
}

func (r Requests) plus(more Requests) Requests {
	return Requests{r.Reads + more.Reads, r.Writes + more.Writes, r.Watches + more.Watches, r.BytesOut + more.BytesOut, r.Streamed + more.Streamed}
}

// Stored is what a Workspace stores.
type Stored struct{ Objects, Bytes int64 }

// Size is what an Organization has.
type Size struct{ Members, Workspaces, Entries int64 }

// Caller is a person, by the name of the User, or a bot, by the UID of its account.
type Caller struct {
	Bot bool
	ID  string
}

// Of is something of a Workspace in an interval.
type Of[T any] struct {
	Starts time.Time
	Workspace
	Value T
}

// Batch are rows that the database does not have. The Workspace of a Size has no UUID.
type Batch struct {
	Requests []Of[Requests]
	Callers  []Of[Caller]
	Stored   []Of[Stored]
	Sizes    []Of[Size]
}

// Step is the length of the items of an answer.
type Step string

// The steps. Days are those of UTC.
const (
	Hour Step = "hour"
	Day  Step = "day"
)

// Duration is the length of an item.
func (s Step) Duration() time.Duration {
	if s == Day {
		return 24 * time.Hour
	}
	return time.Hour
}

// Query selects the usage of one Organization, or of one Workspace in it. Only OfOrg and OfWorkspace make one: the
// tenant is no filter that could be left out or replaced.
type Query struct {
	org, workspace string

	Span
}

// Span is a time in steps. It begins at From, and ends before To.
type Span struct {
	From, To time.Time
	Step     Step
}

// OfOrg returns the query for the usage of an Organization.
func OfOrg(org string, s Span) Query { return Query{org: org, Span: s} }

// OfWorkspace returns the query for the usage of a Workspace of an Organization.
func OfWorkspace(org, workspace string, s Span) Query {
	return Query{org: org, workspace: workspace, Span: s}
}

// Tenant returns the UUIDs of the Organization and, if the query is about one, of the Workspace. ok is false for a
// query that nobody made for a tenant.
func (q Query) Tenant() (org, workspace string, ok bool) { return q.org, q.workspace, q.org != "" }

// Item is what was used from a time on, for a step.
type Item struct {
	From time.Time
	Stored
	Requests
	People, Bots int64
	// Size is that of an Organization.
	Size
}

package records

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/usage"
)

// UsageFreshness returns up to when the usage of each replica of the last days is there, the one that is most behind
// first.
func (r *Reader) UsageFreshness(ctx context.Context) (all []audit.Freshness, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	all, err = read(ctx, r.db.reads, r.db.query(`SELECT replica, as_of FROM (
		SELECT replica, as_of FROM usage_replicas WHERE as_of > ? ORDER BY as_of DESC LIMIT ?) newest ORDER BY as_of`),
		[]any{timeText(r.now().Add(-heardOf)), maxReplicas}, freshnessInto)
	if err != nil {
		return nil, unavailable(err)
	}
	return all, nil
}

// usageQuery reads columns of numbers by what groups them. Its texts are constants.
type usageQuery struct {
	// selects begins with what groups the numbers. The conditions of the tenant stand between it and groups.
	selects, groups string
	columns         int
	set             func(i *usage.Item, values []int64)
}

// usageQueries are those of an answer, grouped by a constant of this package. Distinct callers of a group are counted
// over all its intervals and Workspaces.
func (d *DB) usageQueries(by string, ofOrg bool) []usageQuery {
	all := []usageQuery{
		{
			"SELECT " + by + ` AS step, CAST(sum(reads) AS bigint), CAST(sum(writes) AS bigint), CAST(sum(watches) AS bigint),
				CAST(sum(bytes_out) AS bigint), CAST(1000 * sum(stream_seconds) AS bigint) FROM usage_requests`, "GROUP BY 1", 5,
			func(i *usage.Item, v []int64) {
				i.Requests = usage.Requests{Reads: v[0], Writes: v[1], Watches: v[2], BytesOut: v[3], Streamed: time.Duration(v[4]) * time.Millisecond}
			},
		}, {
			"SELECT " + by + ` AS step, count(DISTINCT CASE kind WHEN 'person' THEN caller END),
				count(DISTINCT CASE kind WHEN 'bot' THEN caller END) FROM usage_callers`, "GROUP BY 1", 2,
			func(i *usage.Item, v []int64) { i.People, i.Bots = v[0], v[1] },
		}, {
			"SELECT step, CAST(sum(objects) AS bigint), CAST(sum(bytes) AS bigint) FROM (SELECT " + by + ` AS step,
				workspace, max(objects) AS objects, max(bytes) AS bytes FROM usage_stored`, "GROUP BY 1, 2) stored GROUP BY 1", 2,
			func(i *usage.Item, v []int64) { i.Stored = usage.Stored{Objects: v[0], Bytes: v[1]} },
		},
	}
	if ofOrg {
		all = append(all, usageQuery{
			"SELECT " + by + " AS step, max(members), max(workspaces), max(entries) FROM usage_orgs", "GROUP BY 1", 3,
			func(i *usage.Item, v []int64) { i.Size = usage.Size{Members: v[0], Workspaces: v[1], Entries: v[2]} },
		})
	}
	return all
}

// step is the SQL for the start of the step that an interval belongs to.
func (d *DB) step(s usage.Step) string {
	switch {
	case d.postgres && s == usage.Day:
		return "date_trunc('day', starts, 'UTC')"
	case d.postgres:
		return "date_trunc('hour', starts, 'UTC')"
	case s == usage.Day:
		return "substr(starts, 1, 10) || 'T00:00:00.000000Z'"
	}
	return "substr(starts, 1, 13) || ':00:00.000000Z'"
}

// Usage returns the items of a span, the oldest first. A step without anything has none.
func (r *Reader) Usage(ctx context.Context, q usage.Query) ([]usage.Item, error) {
	org, workspace, ok := q.Tenant()
	if !ok {
		return nil, errors.New("a query of usage names no tenant")
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var within conditions
	within.add("org = ?", org)
	if workspace != "" {
		within.add("workspace = ?", workspace)
	}
	within.add("starts >= ?", timeText(q.From))
	within.add("starts < ?", timeText(q.To))
	found := map[moment]*usage.Item{}
	for _, of := range r.db.usageQueries(r.db.step(q.Step), workspace == "") {
		if err := addUsage(ctx, r.db, found, of, within); err != nil {
			return nil, unavailable(err)
		}
	}
	all := make([]usage.Item, 0, len(found))
	for _, at := range slices.SortedFunc(maps.Keys(found), func(a, b moment) int { return time.Time(a).Compare(time.Time(b)) }) {
		found[at].From = time.Time(at)
		all = append(all, *found[at])
	}
	return all, nil
}

// UsageOfOrgs returns what each Organization used between two times, by its UUID.
func (r *Reader) UsageOfOrgs(ctx context.Context, from, to time.Time) (map[string]*usage.Item, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var within conditions
	within.add("starts >= ?", timeText(from))
	within.add("starts < ?", timeText(to))
	found := map[string]*usage.Item{}
	for _, of := range r.db.usageQueries("org", true) {
		if err := addUsage(ctx, r.db, found, of, within); err != nil {
			return nil, unavailable(err)
		}
	}
	for _, i := range found {
		i.From = from
	}
	return found, nil
}

// addUsage adds what a query reads to the items, by what it is grouped by.
func addUsage[K comparable](ctx context.Context, db *DB, found map[K]*usage.Item, of usageQuery, within conditions) error {
	rows, err := db.reads.QueryContext(ctx, db.query(of.selects+" WHERE "+within.text()+" "+of.groups), within.values...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	values := make([]int64, of.columns)
	var key K
	into := []any{&key}
	for i := range values {
		into = append(into, &values[i])
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if found[key] == nil {
			found[key] = &usage.Item{}
		}
		of.set(found[key], values)
	}
	return rows.Err()
}

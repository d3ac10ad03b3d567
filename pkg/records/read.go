package records

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

const (
	// readTimeout bounds one statement of a reader.
	readTimeout = 10 * time.Second
	// maxScanned is the number of events that one page looks at where a filter has no index.
	maxScanned = 5_000
	// maxPageBytes is the number of bytes of events after which a page ends.
	maxPageBytes = 4 << 20
	// heardOf is the time for which a replica is listed after it was last heard of, and maxReplicas the number
	// of those that are listed.
	heardOf     = 7 * 24 * time.Hour
	maxReplicas = 100
)

// The indexes of the events of tenants, which have nothing that outsiders caused.
const (
	tenantIndex          condition = "audit_events_tenant"
	tenantActorIndex     condition = "audit_events_tenant_actor"
	tenantObjectIndex    condition = "audit_events_tenant_object"
	tenantWorkspaceIndex condition = "audit_events_tenant_workspace"
	// rescueIndex is that of the few events that all members see.
	rescueIndex condition = "audit_events_rescue"
)

// onlyRescues is a condition of rescueIndex. A database uses the index for these words only.
const onlyRescues condition = "action = '" + audit.ActionRescue + "'"

// order is that of pages, in the form of a list of columns and of an ORDER BY.
const (
	order      = "time, replica, log, seq"
	descending = "time DESC, replica DESC, log DESC, seq DESC"
)

// Reader answers from the database, for all replicas.
type Reader struct {
	db      *DB
	shipper *Shipper
	now     func() time.Time
}

// NewReader returns a Reader. The shipper is that of this replica.
func NewReader(db *DB, s *Shipper) *Reader { return &Reader{db: db, shipper: s, now: time.Now} }

// Await returns when the events that this replica has written are stored, or when ctx ends.
func (r *Reader) Await(ctx context.Context) { r.shipper.Await(ctx) }

// Freshness returns the replicas of the last days, the one that is most behind first.
func (r *Reader) Freshness(ctx context.Context) (all []audit.Freshness, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	now := r.now()
	all, err = read(ctx, r.db.reads, r.db.query(`SELECT replica, oldest FROM (
		SELECT replica, min(as_of) AS oldest FROM audit_heads GROUP BY replica ORDER BY min(as_of) DESC LIMIT ?) newest
		WHERE oldest > ? ORDER BY oldest`), []any{maxReplicas, timeText(now.Add(-heardOf))}, freshnessInto)
	if err != nil {
		return nil, unavailable(err)
	}
	own := r.shipper.upToDate()
	for i := range all {
		if all[i].Replica == own {
			// The table hears of it now and then only.
			all[i].AsOf = now.UTC()
		}
	}
	return all, nil
}

func freshnessInto(f *audit.Freshness) []any { return []any{&f.Replica, (*moment)(&f.AsOf)} }

// Events returns a page.
func (r *Reader) Events(ctx context.Context, q audit.Query) (page audit.Page, err error) {
	within, filters, err := r.db.conditionsOf(q)
	if err != nil {
		return page, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var last *audit.Position
	// What within selects is in the order of an index, so that nothing but the page is read.
	if !filters.empty() && !q.Rescues() {
		// A filter that selects nothing would have the database read all that the tenant has.
		if last, err = r.lastScanned(ctx, within); err != nil {
			return page, unavailable(err)
		}
		if last != nil {
			within.add("("+order+") >= (?, ?, ?, ?)", positionValues(*last)...)
		}
	}
	within.and(filters)
	rows, err := r.db.reads.QueryContext(ctx, r.db.pageOf(within), append(within.values, q.Limit+1)...)
	if err != nil {
		return page, unavailable(err)
	}
	defer func() { _ = rows.Close() }()
	var at audit.Position
	for n, size := 0, 0; rows.Next(); n++ {
		if n == q.Limit || size >= maxPageBytes {
			page.Next = &at
			return page, nil
		}
		var line string
		if err := rows.Scan((*moment)(&at.Time), &at.Replica, &at.Log, &at.Seq, &line); err != nil {
			return page, unavailable(err)
		}
		size += len(line)
		var e audit.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return page, fmt.Errorf("event %d of %s of replica %s: %w", at.Seq, at.Log, at.Replica, err)
		}
		// Columns lack what no database takes: that must not make an event one of another tenant.
		if q.Selects(e) {
			page.Events = append(page.Events, e)
		}
	}
	if err := rows.Err(); err != nil {
		return page, unavailable(err)
	}
	page.Next = last
	return page, nil
}

// lastScanned returns the last event that a page looks at. It is nil if that is all.
func (r *Reader) lastScanned(ctx context.Context, within conditions) (*audit.Position, error) {
	var p audit.Position
	err := r.db.reads.QueryRowContext(ctx, r.db.lastOf(within), append(within.values, maxScanned-1)...).
		Scan((*moment)(&p.Time), &p.Replica, &p.Log, &p.Seq)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &p, err
}

// pageOf is the statement that reads a page; its last value is the number of events.
func (d *DB) pageOf(c conditions) string {
	return d.query("SELECT " + order + ", event FROM " + d.from(c) + " WHERE " + c.text() + " ORDER BY " + descending + " LIMIT ?")
}

// lastOf is the statement that finds the last event that a page looks at; its last value is the number of those before it.
func (d *DB) lastOf(c conditions) string {
	return d.query("SELECT " + order + " FROM " + d.from(c) + " WHERE " + c.text() + " ORDER BY " + descending + " LIMIT 1 OFFSET ?")
}

// from names the table, with the index where SQLite must not choose: it has no statistics, and takes one with the events of
// outsiders now and then.
func (d *DB) from(c conditions) string {
	if d.postgres || c.index == "" {
		return "audit_events"
	}
	return "audit_events INDEXED BY " + string(c.index)
}

// condition is a part of a WHERE. It is a constant of this package: what a client sends is a value.
type condition string

// conditions are a WHERE with the values of its placeholders.
type conditions struct {
	texts  []string
	values []any
	// index is the one of the tenants that has the conditions; empty for the whole hub.
	index condition
}

func (c *conditions) add(text condition, values ...any) {
	c.texts, c.values = append(c.texts, string(text)), append(c.values, values...)
}

func (c *conditions) and(more conditions) {
	c.texts, c.values = append(c.texts, more.texts...), append(c.values, more.values...)
}

func (c *conditions) empty() bool { return len(c.texts) == 0 }

// text is the WHERE. Without conditions it is true for every row.
func (c *conditions) text() string {
	if c.empty() {
		return "1 = 1"
	}
	return strings.Join(c.texts, " AND ")
}

// conditionsOf returns the conditions that an index has, the tenant first, and the other filters. It is the only
// place that writes the WHERE of a tenant.
func (d *DB) conditionsOf(q audit.Query) (within, filters conditions, err error) {
	org, workspace, ok := q.Tenant()
	if !ok {
		return within, filters, errors.New("a query of audit events names no tenant")
	}
	if org != "" {
		within.add("org = ?", org)
	}
	if !q.Outsiders() {
		// Indexes have it: outsiders cannot make the database read what they sent to the tenant.
		within.index = tenantIndex
		within.add("NOT outsider")
	}
	// All filters look at the few events of this index: no page ends at an event that its reader must not see.
	indexed := q.Rescues()
	if indexed {
		within.index = rescueIndex
		within.add(onlyRescues)
	}
	use := func(by condition) {
		if indexed = true; within.index != "" {
			within.index = by
		}
	}
	if workspace != "" {
		within.add("workspace = ?", workspace)
		use(tenantWorkspaceIndex)
	}
	for _, f := range []struct {
		value string
		// index is the condition that can use the index by; filter is the same one without it.
		index, filter, by condition
	}{
		{q.Object, "object = ?", "coalesce(object, '') = ?", tenantObjectIndex},
		{q.Actor, "actor = ?", "coalesce(actor, '') = ?", tenantActorIndex},
		{q.Workspace, "workspace = ?", "coalesce(workspace, '') = ?", tenantWorkspaceIndex},
	} {
		switch {
		case f.value == "":
		case !indexed:
			within.add(f.index, f.value)
			use(f.by)
		default:
			filters.add(f.filter, f.value)
		}
	}
	if !q.Since.IsZero() {
		within.add("time >= ?", timeText(q.Since))
	}
	if !q.Until.IsZero() {
		within.add("time < ?", timeText(q.Until))
	}
	if q.After != nil {
		within.add("("+order+") < (?, ?, ?, ?)", positionValues(*q.After)...)
	}
	// There are no patterns: nothing in the text is a wildcard.
	switch {
	case q.Action == "":
	case d.postgres:
		filters.add("strpos(action, ?) > 0", q.Action)
	default:
		filters.add("instr(action, ?) > 0", q.Action)
	}
	if q.MaxCode > 0 {
		filters.add("code BETWEEN ? AND ?", q.MinCode, q.MaxCode)
	}
	return within, filters, nil
}

func positionValues(p audit.Position) []any {
	return []any{timeText(p.Time), p.Replica, p.Log, p.Seq}
}

// moment reads a column with a time: PostgreSQL has a type for it, and SQLite a text.
type moment time.Time

// Scan implements sql.Scanner.
func (m *moment) Scan(value any) error {
	switch v := value.(type) {
	case time.Time:
		*m = moment(v.UTC())
		return nil
	case string:
		t, err := time.Parse(timeForm, v)
		*m = moment(t)
		return err
	}
	return fmt.Errorf("%T is no time", value)
}

// unavailable is the error for clients of what the database does not answer.
func unavailable(err error) error {
	return errs.Wrap(errs.Unavailable, err, "the records database does not answer at the moment; try again later")
}

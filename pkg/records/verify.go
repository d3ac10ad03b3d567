package records

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/faroshq/kedge-hub/pkg/audit"
)

// verifyTimeout bounds a walk through the table.
const verifyTimeout = 30 * time.Minute

// table is the place of a finding in the database.
const table = "audit_events"

// Verify walks the chains of the table audit_events with v: every line must be the one that its hash says, stand where
// its number says, and agree with the columns. It returns how far each chain went when it began.
func (d *DB) Verify(ctx context.Context, v *audit.Verifier) (heads []audit.Head, err error) {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	// One snapshot, so that what is stored or removed meanwhile is no finding.
	options := &sql.TxOptions{ReadOnly: true}
	if d.postgres {
		options.Isolation = sql.LevelRepeatableRead
	}
	tx, err := d.reads.BeginTx(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("read the audit events: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	if heads, err = ends(ctx, tx, "audit_heads"); err != nil {
		return nil, err
	}
	anchors, err := ends(ctx, tx, "audit_anchors")
	if err != nil {
		return nil, err
	}
	for _, a := range anchors {
		v.Anchor(table, a)
	}
	rows, err := tx.QueryContext(ctx, `
		SELECT replica, log, seq, id, stage, action, actor_kind, actor, org, workspace, object, outsider, code, facts, event, prev, hash
		FROM audit_events ORDER BY replica, log, seq`)
	if err != nil {
		return nil, fmt.Errorf("read the audit events: %w", err)
	}
	defer func() { _ = rows.Close() }()
	walk := v.Walk(table)
	for rows.Next() {
		if err := verifyRow(rows, v, walk); err != nil {
			return nil, fmt.Errorf("read an audit event: %w", err)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the audit events: %w", err)
	}
	return heads, nil
}

// verifyRow compares a row with the line in it, and adds it to its chain.
func verifyRow(rows *sql.Rows, v *audit.Verifier, walk func(audit.Event, string)) error {
	var at audit.Head
	var line, prev string
	var outsider bool
	var code int
	var facts sql.NullString
	// texts are the columns from id to object.
	var texts [8]string
	into := []any{&at.Replica, &at.Log, &at.Seq}
	for i := range texts {
		into = append(into, &texts[i])
	}
	into = append(into, &outsider, &code, &facts, &line, &prev, &at.Hash)
	if err := rows.Scan(into...); err != nil {
		return err
	}
	var e audit.Event
	if json.Unmarshal([]byte(line), &e) != nil || e.Replica != at.Replica || e.Log != at.Log || e.Seq != at.Seq {
		v.Find(table, at, "was changed: its columns name another event than its line")
		return nil
	}
	if audit.Hash([]byte(line)) != at.Hash || prev != e.Prev {
		v.Find(table, at, "was changed: its line is not the one of its hash")
	}
	want := valuesOf(record{audit.Line{Event: e}, line})[4:]
	same := want[8] == any(outsider) && want[9] == any(code) && sameFacts(want[10], facts)
	for i := range 8 {
		same = same && want[i] == any(texts[i])
	}
	if !same {
		v.Find(table, at, "was changed: a column does not agree with its line")
	}
	walk(e, audit.Hash([]byte(line)))
	return nil
}

// sameFacts compares JSON, which PostgreSQL stores in another form.
func sameFacts(want any, got sql.NullString) bool {
	text, ok := want.(string)
	if !ok || !got.Valid {
		return ok == got.Valid
	}
	var a, b any
	if json.Unmarshal([]byte(text), &a) != nil || json.Unmarshal([]byte(got.String), &b) != nil {
		return false
	}
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// ends reads ends of chains from a table.
func ends(ctx context.Context, tx *sql.Tx, table string) ([]audit.Head, error) {
	all, err := read(ctx, tx, "SELECT replica, log, seq, hash FROM "+table, nil, func(h *audit.Head) []any {
		return []any{&h.Replica, &h.Log, &h.Seq, &h.Hash}
	})
	if err != nil {
		return nil, fmt.Errorf("read the ends of the chains: %w", err)
	}
	return all, nil
}

package records

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// lookEvery is the interval at which the leader writes that it still looks: what ended while nobody looked ends at the last
// of these moments.
const lookEvery = 10 * time.Second

// Facts are the facts that access follows from, as they are now.
type Facts interface {
	Fact(tenancy.FactKey) (tenancy.AccessFact, bool)
	Keys() []tenancy.FactKey
}

// Access keeps who had access, and when, in the table access_intervals: a row for each fact that access follows from and each
// time during which it was the same. The table access_looks has the times during which a leader looked. It runs on the
// leader.
type Access struct {
	history[tenancy.FactKey, tenancy.AccessFact]
	facts     Facts
	retention time.Duration
	// look is the row of access_looks since the last comparison, and pruned the time at which nothing was too old. Only
	// Run uses them.
	look   string
	pruned time.Time
}

// NewAccess returns an Access. While room returns an error, changes wait in memory. What ended is removed after the
// retention, where that is not zero.
func NewAccess(db *DB, facts Facts, k clock.PassiveClock, retention time.Duration, room func() error) *Access {
	a := &Access{facts: facts, retention: retention}
	a.history = newHistory(db, k, room, historyTable[tenancy.FactKey, tenancy.AccessFact]{
		name: "access", rows: "access_intervals", open: a.open, things: a.things, store: a.store,
		endsUnseen: true, looked: a.looked, every: lookEvery,
	})
	return a
}

// Changed records facts as they are now, if that differs from what is known of them.
func (a *Access) Changed(keys ...tenancy.FactKey) {
	things := make([]thing[tenancy.FactKey, tenancy.AccessFact], 0, len(keys))
	for _, key := range keys {
		things = append(things, a.thing(key))
	}
	a.changed(things...)
}

// OrgChanged records all facts that are known of an Organization as they are now.
func (a *Access) OrgChanged(org string) {
	a.mu.Lock()
	var known []tenancy.FactKey
	for key := range a.known {
		if key.Org == org {
			known = append(known, key)
		}
	}
	a.mu.Unlock()
	a.Changed(known...)
}

func (a *Access) thing(key tenancy.FactKey) thing[tenancy.FactKey, tenancy.AccessFact] {
	return thing[tenancy.FactKey, tenancy.AccessFact]{key, func(tenancy.AccessFact) (tenancy.AccessFact, bool) {
		fact, is := a.facts.Fact(key)
		fact.Name = strings.ReplaceAll(fact.Name, "\x00", "")
		return fact, is
	}}
}

// things are the facts of the rows and those that there are.
func (a *Access) things(rows map[tenancy.FactKey]row[tenancy.AccessFact]) (all []thing[tenancy.FactKey, tenancy.AccessFact]) {
	for key := range rows {
		all = append(all, a.thing(key))
	}
	for _, key := range a.facts.Keys() {
		all = append(all, a.thing(key))
	}
	return all
}

// factColumns are those of a fact in the order of factInto.
const factColumns = "kind, org, workspace, subject, token, name, role, sudo, manager, roles, sources, default_access, expires_at, valid_from"

// factInto are the places into which the columns of a row are read.
func factInto(f *tenancy.HeldFact) []any {
	return []any{
		&f.Kind, &f.Org, &f.Workspace, &f.Subject, &f.Token, &f.Name, &f.Role, &f.Sudo, &f.Manager, &f.Roles, &f.Sources, &f.DefaultAccess,
		&f.ExpiresAt, (*moment)(&f.Since),
	}
}

// open reads the rows without an end, and the last moment at which somebody looked.
func (a *Access) open(ctx context.Context) (known map[tenancy.FactKey]row[tenancy.AccessFact], last time.Time, err error) {
	last, err = a.db.lastChange(ctx, `SELECT max(at) FROM (SELECT max(valid_from) AS at FROM access_intervals
		UNION ALL SELECT max(valid_to) FROM access_intervals UNION ALL SELECT max(valid_to) FROM access_looks) t`)
	if err != nil {
		return nil, last, err
	}
	facts, err := read(ctx, a.db.writes, "SELECT "+factColumns+" FROM access_intervals WHERE valid_to IS NULL", nil, factInto)
	if err != nil {
		return nil, last, err
	}
	known = map[tenancy.FactKey]row[tenancy.AccessFact]{}
	for _, f := range facts {
		known[f.FactKey] = row[tenancy.AccessFact]{f.AccessFact, f.Since}
	}
	a.look, a.history.looked = rand.Text(), time.Time{}
	return known, last, nil
}

// store writes a change. It neither ends nor precedes what began after it.
func (a *Access) store(ctx context.Context, tx *sql.Tx, c change[tenancy.FactKey, tenancy.AccessFact]) error {
	k, f := c.key, c.value
	const same = "org = ? AND kind = ? AND workspace = ? AND subject = ? AND token = ?"
	ends := a.db.query("UPDATE access_intervals SET valid_to = ?, unseen = ? WHERE " + same + " AND valid_to IS NULL AND valid_from < ?")
	if _, err := tx.ExecContext(ctx, ends, c.ends, c.unseen, k.Org, k.Kind, k.Workspace, k.Subject, k.Token, c.ends); err != nil || c.gone {
		return err
	}
	begins := a.db.query("INSERT INTO access_intervals (id, " + factColumns + `) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
		WHERE NOT EXISTS (SELECT 1 FROM access_intervals WHERE ` + same + " AND valid_from >= ?)")
	_, err := tx.ExecContext(ctx, begins, c.id, k.Kind, k.Org, k.Workspace, k.Subject, k.Token, f.Name, f.Role, f.Sudo, f.Manager, f.Roles, f.Sources,
		f.DefaultAccess, f.ExpiresAt, c.begins, k.Org, k.Kind, k.Workspace, k.Subject, k.Token, c.begins)
	return err
}

// looked writes that the table has everything up to a moment, and removes what is too old.
func (a *Access) looked(ctx context.Context, at time.Time) error {
	look := a.db.query(`INSERT INTO access_looks (id, valid_from, valid_to) VALUES (?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET valid_to = excluded.valid_to`)
	err := a.db.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, look, a.look, timeText(at), timeText(at))
		return err
	})
	if err != nil {
		return fmt.Errorf("store that access was looked at: %w", err)
	}
	if err := a.prune(ctx, at); err != nil {
		log.From(ctx).Warn("old records of access were not removed", zap.Error(err))
	}
	return nil
}

// prune removes a piece of what ended before the retention. What is known begins later first.
func (a *Access) prune(ctx context.Context, now time.Time) error {
	if a.retention <= 0 || now.Sub(a.pruned) < pruneInterval {
		return nil
	}
	before := timeText(now.Add(-a.retention))
	return a.db.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for _, statement := range []string{
			"DELETE FROM access_looks WHERE valid_to < ?",
			"UPDATE access_looks SET valid_from = ? WHERE valid_from < ?",
		} {
			values := []any{before, before}[:strings.Count(statement, "?")]
			if _, err := tx.ExecContext(ctx, a.db.query(statement), values...); err != nil {
				return err
			}
		}
		old := a.db.query("DELETE FROM access_intervals WHERE id IN (SELECT id FROM access_intervals WHERE valid_to < ? ORDER BY valid_to LIMIT ?)")
		gone, err := tx.ExecContext(ctx, old, before, maxPruned)
		if err != nil {
			return err
		}
		if n, err := gone.RowsAffected(); err != nil || n == maxPruned {
			return err
		}
		a.pruned = now
		return nil
	})
}

package records

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

const (
	// pruneInterval is the time after which it is asked again what is too old.
	pruneInterval = time.Hour
	// maxPruned is the number of events that one transaction removes.
	maxPruned = 1000
)

// prune removes a piece of the events that are older than the retention, of all replicas, from the beginning of a chain on.
// An anchor keeps the last event of a chain that was removed, so that nobody takes the beginning for a cut. What stands
// behind a younger event, by a clock that was wrong, goes with that one: a gap in the middle is what a forger leaves. An
// event from the future keeps nothing back, and goes with those that stand behind it.
func (s *Shipper) prune(ctx context.Context) error {
	now := time.Now()
	if s.retention <= 0 || now.Sub(s.pruned) < pruneInterval {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	before, latest := timeText(now.Add(-s.retention)), timeText(now)
	var replica, chain string
	var to uint64
	begins := s.db.query(`SELECT replica, log FROM audit_heads h WHERE (
		SELECT time FROM audit_events e WHERE e.replica = h.replica AND e.log = h.log AND time <= ? ORDER BY seq LIMIT 1) < ? LIMIT 1`)
	err := s.db.writes.QueryRowContext(ctx, begins, latest, before).Scan(&replica, &chain)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		s.pruned = now
		return nil
	case err != nil:
		return fmt.Errorf("find old audit events: %w", err)
	}
	return s.db.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
		bounds := tx.QueryRowContext(ctx, s.db.query(`WITH oldest AS (
			SELECT seq, time FROM audit_events WHERE replica = ? AND log = ? AND time <= ? ORDER BY seq LIMIT ?)
			SELECT max(seq) FROM oldest
			WHERE seq < coalesce((SELECT min(seq) FROM oldest WHERE time >= ?), 9223372036854775807)`),
			replica, chain, latest, maxPruned, before)
		if err := bounds.Scan(&to); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, s.db.query(`INSERT INTO audit_anchors (replica, log, seq, hash)
			SELECT replica, log, seq, hash FROM audit_events WHERE replica = ? AND log = ? AND seq = ?
			ON CONFLICT (replica, log) DO UPDATE SET seq = excluded.seq, hash = excluded.hash`), replica, chain, to); err != nil {
			return err
		}
		remove := s.db.query("DELETE FROM audit_events WHERE replica = ? AND log = ? AND seq <= ?")
		gone, err := tx.ExecContext(ctx, remove, replica, chain, to)
		if err != nil {
			return err
		}
		n, err := gone.RowsAffected()
		s.removed.Add(float64(n))
		return err
	})
}

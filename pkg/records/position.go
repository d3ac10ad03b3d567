package records

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/faroshq/kedge-hub/pkg/audit"
)

// followers read the files of each chain behind what the database has.
func (s *Shipper) followers(ctx context.Context) (all map[string]*follower, closing func(), err error) {
	all = map[string]*follower{}
	closing = func() {
		for _, f := range all {
			f.close()
		}
	}
	for i, head := range s.log.Heads() {
		if all[head.Log], err = s.followerOf(ctx, head, s.log.Paths()[i]); err != nil {
			return nil, nil, err
		}
	}
	return all, closing, nil
}

// errForked is about a chain of which the database has other events than the files. It passes when the hub begins a new one.
var errForked = errors.New("the files of the audit log are not those whose events the database has, as an older copy is; " +
	"restart the hub while the database answers: it puts them aside if the database has all that is in them. " +
	"If this comes again, stop the hub, move its audit files elsewhere and keep them, and start it")

// position is the last event of a chain that is stored, and the hash of its line. It has no event where seq is 0.
type position struct {
	seq  uint64
	hash string
}

// followerOf goes on behind the last event of a chain that the database has.
func (s *Shipper) followerOf(ctx context.Context, head audit.Head, path string) (*follower, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	at, err := s.last(ctx, s.db.writes, head.Replica, head.Log)
	if err != nil {
		return nil, err
	}
	if at.seq > head.Seq || at.seq == head.Seq && at.hash != head.Hash {
		return nil, fmt.Errorf("the database ends with event %d of %s, and the files with another one, %d: %w",
			at.seq, head.Log, head.Seq, errForked)
	}
	s.moveTo(head.Log, at)
	return &follower{path: path, log: head.Log, position: at, joins: at.seq > 0}, nil
}

// Outlived reports whether the database has all events of the files of a replica that end with ends, and more: the files
// are an older copy, or lost their ends with the power. What the hub would write to them has numbers that are taken.
func (d *DB) Outlived(ctx context.Context, ends []audit.Head) (outlived bool, err error) {
	files := map[string]uint64{}
	for _, end := range ends {
		var hash string
		err := d.reads.QueryRowContext(ctx, d.query("SELECT hash FROM audit_events WHERE replica = ? AND log = ? AND seq = ?"),
			end.Replica, end.Log, end.Seq).Scan(&hash)
		if errors.Is(err, sql.ErrNoRows) || err == nil && hash != end.Hash || end.Replica != ends[0].Replica {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		files[end.Log] = end.Seq
	}
	stored, err := d.Heads(ctx)
	for _, h := range stored {
		outlived = outlived || len(ends) > 0 && h.Replica == ends[0].Replica && h.Seq > files[h.Log]
	}
	return outlived, err
}

// last returns the last event of a chain that the database has. A head without its event is that of a table that was
// dropped.
func (s *Shipper) last(ctx context.Context, db querier, replica, log string) (at position, err error) {
	err = db.QueryRowContext(ctx, s.db.query(`SELECT h.seq, h.hash FROM audit_heads h WHERE h.replica = ? AND h.log = ? AND (
		EXISTS (SELECT 1 FROM audit_events e WHERE e.replica = h.replica AND e.log = h.log AND e.seq = h.seq) OR
		EXISTS (SELECT 1 FROM audit_anchors a WHERE a.replica = h.replica AND a.log = h.log AND a.seq = h.seq))`), replica, log).Scan(&at.seq, &at.hash)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return at, err
}

// follows fails if the last event of the database is not the one that was stored last: another replica can have made a
// table that was dropped before this one has noticed, and another hub can have a copy of the files.
func (s *Shipper) follows(ctx context.Context, tx *sql.Tx, replica, log string) error {
	s.mu.Lock()
	before := s.shipped[log]
	s.mu.Unlock()
	switch at, err := s.last(ctx, tx, replica, log); {
	case err != nil || at == before:
		return err
	case at.seq < before.seq:
		return fmt.Errorf("the records database does not have event %d of %s any more, and gets all again", before.seq, log)
	default:
		return fmt.Errorf("the database has event %d of %s, which this hub did not store: %w", at.seq, log, errForked)
	}
}

// same fails if the database has another event under the number of one of these.
func (s *Shipper) same(ctx context.Context, tx *sql.Tx, batch []record) error {
	first, last := batch[0].Event, batch[len(batch)-1].Event
	statement := s.db.query("SELECT seq, hash FROM audit_events WHERE replica = ? AND log = ? AND seq BETWEEN ? AND ?")
	held, err := read(ctx, tx, statement, []any{first.Replica, first.Log, first.Seq, last.Seq}, func(p *position) []any {
		return []any{&p.seq, &p.hash}
	})
	if err != nil {
		return err
	}
	stored := map[uint64]string{}
	for _, at := range held {
		stored[at.seq] = at.hash
	}
	for _, r := range batch {
		if stored[r.Event.Seq] != r.Hash {
			return fmt.Errorf("the database has another event %d of %s: %w", r.Event.Seq, first.Log, errForked)
		}
	}
	return nil
}

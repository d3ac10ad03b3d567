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

// followerOf goes on behind the last event of a chain that the database has.
func (s *Shipper) followerOf(ctx context.Context, head audit.Head, path string) (*follower, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	f := &follower{path: path, log: head.Log}
	var err error
	if f.seq, f.hash, err = s.last(ctx, s.db.writes, head.Replica, head.Log); err != nil {
		return nil, err
	}
	if f.seq > head.Seq {
		return nil, fmt.Errorf("the database has event %d of %s, and the files of this replica end with %d: they are older than the database; "+
			"move them elsewhere, so that the replica begins anew", f.seq, head.Log, head.Seq)
	}
	s.moveTo(head.Log, f.seq)
	return f, nil
}

// querier is the database, or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// last returns the last event of a chain that the database has, and its hash, or 0. A head without its event is that of
// a table that was dropped.
func (s *Shipper) last(ctx context.Context, db querier, replica, log string) (seq uint64, hash string, err error) {
	err = db.QueryRowContext(ctx, s.db.query(`SELECT h.seq, h.hash FROM audit_heads h WHERE h.replica = ? AND h.log = ? AND (
		EXISTS (SELECT 1 FROM audit_events e WHERE e.replica = h.replica AND e.log = h.log AND e.seq = h.seq) OR
		EXISTS (SELECT 1 FROM audit_anchors a WHERE a.replica = h.replica AND a.log = h.log AND a.seq = h.seq))`), replica, log).Scan(&seq, &hash)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return seq, hash, err
}

// follows fails if the database does not have the event that was stored last: another replica can have made a table that
// was dropped before this one has noticed.
func (s *Shipper) follows(ctx context.Context, tx *sql.Tx, replica, log string) error {
	s.mu.Lock()
	before := s.shipped[log]
	s.mu.Unlock()
	seq, _, err := s.last(ctx, tx, replica, log)
	if err == nil && seq < before {
		err = fmt.Errorf("the records database does not have event %d of %s any more, and gets all again", before, log)
	}
	return err
}

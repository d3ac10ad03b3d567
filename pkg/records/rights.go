package records

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/faroshq/kedge-hub/pkg/audit"
)

// maxSilence bounds each wait for an answer of Rights, which has no bound itself: there can be a hundred million events, and
// the first one comes when the database has passed over those that are too old.
const maxSilence = time.Minute

// Rights writes the lines of all chains of rights to w, as their files have them: those from the head of their chain in
// heads on, and those that are as new as since. It leaves out the chains of replicas in ended. It fails where the database
// gives no answer.
func (d *DB) Rights(ctx context.Context, heads, ended []audit.Head, since time.Time, w io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(maxSilence, func() {
		cancel(fmt.Errorf("read the audit events: the database has given no answer for %s", maxSilence))
	})
	defer silence.Stop()
	err := d.rights(ctx, heads, ended, since, listening{w, silence})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// listening is where answers are written. Each of them ends a silence.
type listening struct {
	io.Writer
	silence *time.Timer
}

func (l listening) heard() { l.silence.Reset(maxSilence) }

// Write implements io.Writer.
func (l listening) Write(line []byte) (int, error) {
	l.heard()
	defer l.heard()
	return l.Writer.Write(line)
}

func (d *DB) rights(ctx context.Context, heads, ended []audit.Head, since time.Time, w listening) error {
	options := &sql.TxOptions{ReadOnly: true}
	if d.postgres {
		options.Isolation = sql.LevelRepeatableRead
	}
	tx, err := d.reads.BeginTx(ctx, options)
	if err != nil {
		return fmt.Errorf("read the audit events: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	known, err := ends(ctx, tx, "audit_heads")
	if err != nil {
		return err
	}
	of := func(replica string) func(audit.Head) bool {
		return func(h audit.Head) bool { return h.Replica == replica && h.Log == audit.Rights }
	}
	for _, k := range known {
		if k.Log != audit.Rights || slices.ContainsFunc(ended, of(k.Replica)) {
			continue
		}
		from := uint64(0)
		if i := slices.IndexFunc(heads, of(k.Replica)); i >= 0 {
			from = heads[i].Seq
		}
		w.heard()
		if err := d.rightsOf(ctx, tx, k.Replica, from, since, w); err != nil {
			return fmt.Errorf("read the audit events of replica %s: %w", k.Replica, err)
		}
	}
	return nil
}

func (d *DB) rightsOf(ctx context.Context, tx *sql.Tx, replica string, from uint64, since time.Time, w io.Writer) error {
	rows, err := tx.QueryContext(ctx, d.query("SELECT event FROM audit_events WHERE replica = ? AND log = ? AND (seq >= ? OR time >= ?) ORDER BY seq"),
		replica, audit.Rights, int64(from), timeText(since)) //nolint:gosec // a number of events
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return err
		}
		if _, err := io.WriteString(w, line+"\n"); err != nil {
			return err
		}
	}
	return rows.Err()
}

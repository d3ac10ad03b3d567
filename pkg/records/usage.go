package records

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/usage"
)

const (
	// maxUsageEvery is the longest time between two writes of what was counted: an answer is at most a minute old.
	maxUsageEvery = 20 * time.Second
	// maxUsageRows is the number of rows of a kind that one transaction writes.
	maxUsageRows = 1000
)

// UsageWriter writes what this replica counts. Nothing waits for it.
type UsageWriter struct {
	db      *DB
	counter *usage.Counter
	// replica is the ID of this replica, and process that of its rows: the next process counts from zero.
	replica, process string
	retention        time.Duration
	room             func() error

	mu sync.Mutex
	// asOf is the time up to which the database has all counts.
	asOf time.Time
	err  error
	// pruned is when nothing was too old. Only Run uses it.
	pruned time.Time
}

// NewUsageWriter returns a UsageWriter and registers its metric. Rows are removed after the retention. While room
// returns an error, they wait in memory.
func NewUsageWriter(
	db *DB, counter *usage.Counter, replica string, retention time.Duration, room func() error, registry prometheus.Registerer,
) (*UsageWriter, error) {
	u := &UsageWriter{
		db: db, counter: counter, replica: replica, process: rand.Text(), retention: retention, room: room, asOf: time.Now(),
		err: errors.New("the database was not reached yet"),
	}
	lag := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kedge_usage_lag_seconds", Help: "Age in seconds of the last moment up to which the database has all usage that this replica counted.",
	}, func() float64 {
		u.mu.Lock()
		defer u.mu.Unlock()
		return time.Since(u.asOf).Seconds()
	})
	return u, registry.Register(lag)
}

// Err returns why usage cannot be written at the moment.
func (u *UsageWriter) Err() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.err
}

// Run writes until ctx ends, and then what is left, as far as the database takes it within two seconds. Nothing waits
// for the usage of this replica then.
func (u *UsageWriter) Run(ctx context.Context) {
	repeat(ctx, u.session, func() bool { return u.Err() == nil }, func(err error, wait time.Duration) {
		u.done(time.Time{}, err)
		log.From(ctx).Warn("the records database cannot be written; usage waits in memory", zap.Error(err), zap.Duration("retryAfter", wait))
	})
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTimeout)
	defer cancel()
	err := u.write(last)
	if err == nil {
		err = u.leave(last)
	}
	if err != nil {
		log.From(ctx).Warn("the records database does not have the last usage of this replica", zap.Error(err))
	}
}

// leave says that the database has everything of this replica. One that ends in another way is waited for.
func (u *UsageWriter) leave(ctx context.Context) error {
	return u.db.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, u.db.query("DELETE FROM usage_replicas WHERE replica = ?"), u.replica)
		return err
	})
}

// done notes an error, or that the database has everything up to a moment.
func (u *UsageWriter) done(asOf time.Time, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err = err; err == nil {
		u.asOf = asOf
	}
}

// session writes until the database fails or ctx ends.
func (u *UsageWriter) session(ctx context.Context) error {
	if err := u.db.Migrate(ctx); err != nil {
		return err
	}
	ticker := time.NewTicker(min(maxUsageEvery, u.counter.Interval()/2))
	defer ticker.Stop()
	for {
		if err := u.write(ctx); err != nil {
			return err
		}
		if err := u.prune(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// write writes all that was counted until now.
func (u *UsageWriter) write(ctx context.Context) error {
	if err := u.room(); err != nil {
		return err
	}
	for {
		batch, asOf, all := u.counter.Next(maxUsageRows)
		if !all {
			asOf = time.Time{}
		}
		if err := u.store(ctx, batch, asOf); err != nil {
			return fmt.Errorf("store usage: %w", err)
		}
		u.counter.Written(batch)
		if all {
			u.done(asOf, nil)
			return nil
		}
	}
}

// store writes rows in one transaction, and up to when the database has all of them, unless that is zero. A row has the
// whole count of its key, so that it may be written again.
func (u *UsageWriter) store(ctx context.Context, b usage.Batch, asOf time.Time) error {
	return u.db.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
		err := upsert(ctx, u.db, tx, b.Requests, "usage_requests (org, workspace, starts, process, reads, writes, watches, bytes_out, stream_seconds)",
			`(org, starts, workspace, process) DO UPDATE SET reads = excluded.reads, writes = excluded.writes, watches = excluded.watches,
			bytes_out = excluded.bytes_out, stream_seconds = excluded.stream_seconds`,
			func(r usage.Of[usage.Requests]) []any {
				v := r.Value
				return []any{r.Org, r.UUID, timeText(r.Starts), u.process, v.Reads, v.Writes, v.Watches, v.BytesOut, v.Streamed.Seconds()}
			})
		if err == nil {
			err = upsert(ctx, u.db, tx, b.Callers, "usage_callers (org, workspace, starts, kind, caller)", "DO NOTHING",
				func(r usage.Of[usage.Caller]) []any {
					return []any{r.Org, r.UUID, timeText(r.Starts), kindOf(r.Value), r.Value.ID}
				})
		}
		if err == nil {
			err = upsert(ctx, u.db, tx, b.Stored, "usage_stored (org, workspace, starts, objects, bytes)",
				"(org, starts, workspace) DO UPDATE SET "+most("usage_stored", "objects", "bytes"),
				func(r usage.Of[usage.Stored]) []any {
					return []any{r.Org, r.UUID, timeText(r.Starts), r.Value.Objects, r.Value.Bytes}
				})
		}
		if err == nil {
			err = upsert(ctx, u.db, tx, b.Sizes, "usage_orgs (org, starts, members, workspaces, entries)",
				"(org, starts) DO UPDATE SET "+most("usage_orgs", "members", "workspaces", "entries"),
				func(r usage.Of[usage.Size]) []any {
					return []any{r.Org, timeText(r.Starts), r.Value.Members, r.Value.Workspaces, r.Value.Entries}
				})
		}
		if err != nil || asOf.IsZero() {
			return err
		}
		_, err = tx.ExecContext(ctx, u.db.query(`INSERT INTO usage_replicas (replica, as_of) VALUES (?, ?)
			ON CONFLICT (replica) DO UPDATE SET as_of = excluded.as_of`), u.replica, timeText(asOf))
		return err
	})
}

// The kinds of callers in a table.
const (
	person = "person"
	bot    = "bot"
)

func kindOf(c usage.Caller) string {
	if c.Bot {
		return bot
	}
	return person
}

// most keeps the largest value of columns that several processes measure, such as two leaders one after the other.
func most(table string, columns ...string) string {
	for i, c := range columns {
		columns[i] = fmt.Sprintf("%[2]s = CASE WHEN excluded.%[2]s > %[1]s.%[2]s THEN excluded.%[2]s ELSE %[1]s.%[2]s END", table, c)
	}
	return strings.Join(columns, ", ")
}

// upsert writes rows. The texts are constants of this package.
func upsert[T any](ctx context.Context, d *DB, tx *sql.Tx, rows []T, into, conflict string, values func(T) []any) error {
	if len(rows) == 0 {
		return nil
	}
	var all []any
	for _, r := range rows {
		all = append(all, values(r)...)
	}
	row := "(?" + strings.Repeat(", ?", len(all)/len(rows)-1) + ")"
	_, err := tx.ExecContext(ctx, d.query("INSERT INTO "+into+" VALUES "+row+strings.Repeat(", "+row, len(rows)-1)+" ON CONFLICT "+conflict), all...)
	return err
}

// prune removes a piece of each table that is older than the retention.
func (u *UsageWriter) prune(ctx context.Context) error {
	now := time.Now()
	if u.retention <= 0 || now.Sub(u.pruned) < pruneInterval {
		return nil
	}
	var gone int64
	for _, t := range []struct{ table, key, time string }{
		{"usage_requests", "org, starts, workspace, process", "starts"}, {"usage_callers", "org, starts, workspace, kind, caller", "starts"},
		{"usage_stored", "org, starts, workspace", "starts"}, {"usage_orgs", "org, starts", "starts"}, {"usage_replicas", "replica", "as_of"},
	} {
		err := u.db.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
			remove := fmt.Sprintf("DELETE FROM %[1]s WHERE (%[2]s) IN (SELECT %[2]s FROM %[1]s WHERE %[3]s < ? ORDER BY %[3]s LIMIT ?)", t.table, t.key, t.time)
			result, err := tx.ExecContext(ctx, u.db.query(remove), timeText(now.Add(-u.retention)), maxPruned)
			if err != nil {
				return err
			}
			n, err := result.RowsAffected()
			gone += n
			return err
		})
		if err != nil {
			return fmt.Errorf("remove old usage: %w", err)
		}
	}
	if gone == 0 {
		u.pruned = now
	}
	return nil
}

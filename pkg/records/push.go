package records

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/log"
)

const (
	// settles is the time after the end of an interval in which a leader of before may still store a change.
	settles = 30 * time.Second
	// awaited is the time for which an interval waits for the usage of a replica that is not heard of.
	awaited = time.Hour
	// maxPushEvery is the longest time between two looks for an interval to push.
	maxPushEvery = 10 * time.Second
	// maxPushed is the number of rows of one statement. Each has 17 values, of which PostgreSQL takes 65535.
	maxPushed = 1000
)

// Pusher appends what is to be billed to a table that others own: a row for each Workspace and interval that there was
// one, once the interval is final. It runs on the leader.
type Pusher struct {
	db       *DB
	target   *BillingTarget
	billing  *Billing
	interval time.Duration
	clock    clock.PassiveClock
	pushed   prometheus.Counter

	mu sync.Mutex
	// next is the end of the first interval that the table does not have. began is when this leader began. They are
	// zero if that is not known, and without a leader.
	next, began time.Time
	err         error

	// size is the number of rows in a statement. It is smaller after one that failed. Only Run uses it.
	size int
}

// NewPusher returns a Pusher and registers its metrics.
func NewPusher(
	db *DB, target *BillingTarget, billing *Billing, interval time.Duration, k clock.PassiveClock, registry prometheus.Registerer,
) (*Pusher, error) {
	p := &Pusher{db: db, target: target, billing: billing, interval: interval, clock: k, size: maxPushed}
	p.pushed = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kedge_billing_pushed_total", Help: "Rows that this replica has appended to --billing-table.",
	})
	lag := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kedge_billing_lag_seconds",
		Help: "Time in seconds since the end of the oldest interval that --billing-table does not have; 0 if it has all, and on a replica that does not lead.",
	}, func() float64 { return p.Lag().Seconds() })
	return p, errors.Join(registry.Register(p.pushed), registry.Register(lag))
}

// Err returns why rows cannot be pushed at the moment.
func (p *Pusher) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Lag is the time since the end of the first interval that the table does not have.
func (p *Pusher) Lag() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := p.next
	if since.IsZero() {
		since = p.began
	}
	if since.IsZero() {
		return 0
	}
	return max(0, p.clock.Since(since))
}

func (p *Pusher) note(next, began time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next, p.began, p.err = next, began, err
}

// Run pushes until ctx ends. What it has not pushed waits in the records database.
func (p *Pusher) Run(ctx context.Context) {
	defer p.note(time.Time{}, time.Time{}, nil)
	p.note(time.Time{}, p.clock.Now(), nil)
	repeat(ctx, p.session, func() bool { return p.Err() == nil }, func(err error, wait time.Duration) {
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
		log.From(ctx).Warn("rows to bill cannot be pushed; they wait in the records database", zap.Error(err), zap.Duration("retryAfter", wait))
	})
}

// session pushes until a database fails or ctx ends.
func (p *Pusher) session(ctx context.Context) error {
	if err := p.db.Migrate(ctx); err != nil {
		return err
	}
	if err := p.target.Check(ctx); err != nil {
		return err
	}
	ticker := time.NewTicker(min(maxPushEvery, p.interval/2))
	defer ticker.Stop()
	for {
		if err := p.push(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// push pushes the intervals that are final, the oldest first.
func (p *Pusher) push(ctx context.Context) error {
	for {
		from, err := p.position(ctx)
		if err != nil {
			return fmt.Errorf("read how far the billing table is: %w", err)
		}
		if from.IsZero() {
			// There was no Workspace yet.
			p.note(time.Time{}, p.clock.Now(), nil)
			return nil
		}
		// A position of another length of intervals may be within one.
		to := from.Truncate(p.interval).Add(p.interval)
		p.note(to, time.Time{}, nil)
		final, err := p.final(ctx, to)
		if err != nil {
			return fmt.Errorf("read up to when usage is there: %w", err)
		}
		if !final {
			return nil
		}
		if err := p.pushInterval(ctx, from, to); err != nil {
			p.size = max(1, p.size/8)
			return err
		}
		p.size = min(2*p.size, maxPushed)
	}
}

// position returns up to when the table has everything: at first, when the first interval with a Workspace began. It
// is zero without one.
func (p *Pusher) position(ctx context.Context) (at time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	err = p.db.reads.QueryRowContext(ctx, p.db.query("SELECT pushed_to FROM billing_pushes WHERE target = ?"), p.target.name).Scan((*moment)(&at))
	if !errors.Is(err, sql.ErrNoRows) {
		return at, err
	}
	err = p.db.reads.QueryRowContext(ctx, "SELECT valid_from FROM billing_workspaces ORDER BY valid_from LIMIT 1").Scan((*moment)(&at))
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, nil
	}
	return at.Truncate(p.interval), err
}

// final reports whether nothing that happened before a time can still come: the database has all changes of this
// leader, those of the one before had their time, and every replica that is heard of has written its usage.
func (p *Pusher) final(ctx context.Context, end time.Time) (bool, error) {
	now := p.clock.Now()
	if now.Before(end.Add(settles)) || p.billing.Settled().Before(end) {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var asOf time.Time
	err := p.db.reads.QueryRowContext(ctx, p.db.query("SELECT as_of FROM usage_replicas WHERE as_of > ? ORDER BY as_of LIMIT 1"),
		timeText(now.Add(-awaited))).Scan((*moment)(&asOf))
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return !asOf.Before(end), err
}

// pushInterval pushes an interval in the order of its Workspaces, and then remembers that it is there. An interval of
// which a part is there already is completed.
func (p *Pusher) pushInterval(ctx context.Context, from, to time.Time) error {
	for after := ""; ; {
		rows, err := p.db.billed(ctx, from, to, after, p.size)
		if err != nil {
			return fmt.Errorf("read what is to be billed: %w", err)
		}
		if len(rows) == 0 {
			break
		}
		added, err := p.target.add(ctx, rows)
		if err != nil {
			return err
		}
		p.pushed.Add(float64(added))
		after = rows[len(rows)-1].Workspace
	}
	return p.db.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
		// A leader of before does not set it back.
		_, err := tx.ExecContext(ctx, p.db.query(`INSERT INTO billing_pushes (target, pushed_to) VALUES (?, ?) ON CONFLICT (target)
			DO UPDATE SET pushed_to = excluded.pushed_to WHERE excluded.pushed_to > billing_pushes.pushed_to`), p.target.name, timeText(to))
		return err
	})
}

// billedInterval is what is to be billed for a Workspace and an interval.
type billedInterval struct {
	BilledWorkspace
	from, to                                       time.Time
	objects, bytes, requests, writes, people, bots int64
}

// values are those of the columns of the table. Event IDs have the order in which rows are pushed.
func (b billedInterval) values() []any {
	return []any{
		b.from.UTC().Format(time.RFC3339) + "/" + b.Workspace, b.from.UTC(), b.to.UTC(), b.Org, b.OrgName, b.Workspace, b.Name, b.Path, b.CostCenter,
		b.Labels, b.Phase, b.objects, b.bytes, b.requests, b.writes, b.people, b.bots,
	}
}

// billed returns what is to be billed for an interval, for the Workspaces after one. Of a Workspace that changed, its
// last state in the interval counts, as in billing_hours.
func (d *DB) billed(ctx context.Context, from, to time.Time, after string, limit int) ([]billedInterval, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	const query = `SELECT b.workspace, b.name, b.org, b.org_name, b.path, b.cost_center, b.labels, b.phase,
			COALESCE(s.objects, 0), COALESCE(s.bytes, 0), COALESCE(r.requests, 0), COALESCE(r.writes, 0), COALESCE(c.people, 0), COALESCE(c.bots, 0)
		FROM billing_workspaces b
		LEFT JOIN (SELECT org, workspace, max(objects) AS objects, max(bytes) AS bytes
			FROM usage_stored WHERE starts >= ? AND starts < ? GROUP BY org, workspace) s ON s.org = b.org AND s.workspace = b.workspace
		LEFT JOIN (SELECT org, workspace, CAST(sum(reads + writes + watches) AS bigint) AS requests, CAST(sum(writes) AS bigint) AS writes
			FROM usage_requests WHERE starts >= ? AND starts < ? GROUP BY org, workspace) r ON r.org = b.org AND r.workspace = b.workspace
		LEFT JOIN (SELECT org, workspace, count(DISTINCT CASE kind WHEN 'person' THEN caller END) AS people,
				count(DISTINCT CASE kind WHEN 'bot' THEN caller END) AS bots
			FROM usage_callers WHERE starts >= ? AND starts < ? GROUP BY org, workspace) c ON c.org = b.org AND c.workspace = b.workspace
		WHERE b.valid_from < ? AND (b.valid_to IS NULL OR b.valid_to > ?) AND b.workspace > ?
			AND NOT EXISTS (SELECT 1 FROM billing_workspaces n WHERE n.workspace = b.workspace AND n.valid_from > b.valid_from AND n.valid_from < ?)
		ORDER BY b.workspace LIMIT ?`
	f, t := timeText(from), timeText(to)
	return read(ctx, d.reads, d.query(query), []any{f, t, f, t, f, t, t, f, after, t, limit}, func(b *billedInterval) []any {
		b.from, b.to = from, to
		return []any{
			&b.Workspace, &b.Name, &b.Org, &b.OrgName, &b.Path, &b.CostCenter, &b.Labels, &b.Phase,
			&b.objects, &b.bytes, &b.requests, &b.writes, &b.people, &b.bots,
		}
	})
}

package records

import (
	"cmp"
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
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/log"
)

// maxPending is the number of changes that wait in memory. With more of them the present is read again later.
const maxPending = 100_000

// BilledWorkspace is what a bill for a Workspace depends on. Labels are a JSON object.
type BilledWorkspace struct {
	Workspace, Name, Org, OrgName, Path, CostCenter, Labels, Phase string
}

// storable returns the Workspace without NUL, which no database takes.
func (w BilledWorkspace) storable() BilledWorkspace {
	for _, text := range []*string{&w.Name, &w.OrgName, &w.CostCenter} {
		*text = strings.ReplaceAll(*text, "\x00", "")
	}
	w.Labels = withoutNUL(w.Labels)
	return w
}

// Place names a Workspace of an Organization. Without the Organization it is a Workspace that is known.
type Place struct{ Org, Workspace string }

// Present has the Workspaces that there are.
type Present interface {
	Billed(Place) (BilledWorkspace, bool)
	Places() []Place
}

// billed is a change of a Workspace, which is gone if it is empty but for its UUID.
type billed struct {
	id, at string
	when   time.Time
	BilledWorkspace
	gone bool
}

// Billing keeps what bills depend on in the table billing_workspaces: a row for each Workspace and each time during
// which it was the same. It runs on the leader.
type Billing struct {
	db      *DB
	present Present
	clock   clock.PassiveClock
	room    func() error
	wake    chan struct{}

	mu sync.Mutex
	// known is what the rows without an end have after the pending changes. It is nil until the database was read.
	known map[string]BilledWorkspace
	// pending are changes that the database does not have, in their order.
	pending []billed
	// last is the time of the last change: two changes have different ones.
	last time.Time
	// began is when this leader began. It is zero without one.
	began time.Time
	err   error

	// size is the number of changes in a transaction. It is smaller after one that failed. Only Run uses it.
	size int
}

// NewBilling returns a Billing and registers its metric. While room returns an error, changes wait in memory.
func NewBilling(db *DB, present Present, k clock.PassiveClock, room func() error, registry prometheus.Registerer) (*Billing, error) {
	b := &Billing{db: db, present: present, clock: k, room: room, wake: make(chan struct{}, 1), size: maxBatch}
	return b, registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kedge_billing_changes_lag_seconds",
		Help: "Age in seconds of the oldest change of a billed workspace that --database does not have; 0 if it has all, and on a replica that does not lead.",
	}, func() float64 { return b.Lag().Seconds() }))
}

// Err returns why changes cannot be stored at the moment.
func (b *Billing) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Lag is the age of the oldest change that the database does not have. A leader that could not read the database yet has
// the age of its term.
func (b *Billing) Lag() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.began.IsZero():
		return 0
	case b.known == nil:
		return max(0, b.clock.Since(b.began))
	case len(b.pending) > 0:
		return max(0, b.clock.Since(b.pending[0].when))
	}
	return 0
}

// Settled returns the time up to which the database has all changes. It is zero if that is not known.
func (b *Billing) Settled() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil || len(b.pending) > 0 {
		return time.Time{}
	}
	return b.clock.Now()
}

// Changed records Workspaces as they are now, if that differs from what is known of them.
func (b *Billing) Changed(places ...Place) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil {
		return
	}
	for _, p := range places {
		// It is read while the lock is held, so that of two changes the later one is recorded last.
		b.record(p)
	}
	if len(b.pending) > maxPending {
		b.known, b.pending = nil, nil
	}
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *Billing) record(p Place) {
	held, was := b.known[p.Workspace]
	// The cache of the Organization may be ahead of that of its Workspaces.
	p.Org = cmp.Or(p.Org, held.Org)
	now, is := b.present.Billed(p)
	now = now.storable()
	switch {
	case !is && !was, is && was && now == held:
		return
	case is:
		b.known[p.Workspace] = now
	default:
		now.Workspace = p.Workspace
		delete(b.known, p.Workspace)
	}
	b.last = later(b.clock.Now(), b.last.Add(time.Microsecond))
	b.pending = append(b.pending, billed{rand.Text(), timeText(b.last), b.last, now, !is})
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Run records changes until ctx ends, and then what is left, as far as the database takes it within two seconds.
func (b *Billing) Run(ctx context.Context) {
	defer b.forget()
	b.mu.Lock()
	b.began = b.clock.Now()
	b.mu.Unlock()
	backoff := minBackoff
	for {
		err := b.session(ctx)
		if ctx.Err() != nil {
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTimeout)
			defer cancel()
			if err := b.flush(last); err != nil {
				log.From(ctx).Warn("the records database does not have the last changes of billing; the next leader compares", zap.Error(err))
			}
			return
		}
		if b.Err() == nil {
			backoff = minBackoff
		}
		b.failed(err)
		log.From(ctx).Warn("the records database cannot be written; changes of billing wait in memory", zap.Error(err), zap.Duration("retryAfter", backoff))
		select {
		case <-ctx.Done():
		case <-time.After(backoff):
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// forget ends a term of the leader: another one records from now on.
func (b *Billing) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known, b.pending, b.began, b.err = nil, nil, time.Time{}, nil
}

func (b *Billing) failed(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

// session records until the database fails or ctx ends.
func (b *Billing) session(ctx context.Context) error {
	if err := b.room(); err != nil {
		return err
	}
	if err := b.db.Migrate(ctx); err != nil {
		return err
	}
	for {
		if err := b.compare(ctx); err != nil {
			return err
		}
		if err := b.flush(ctx); err != nil {
			return err
		}
		b.failed(nil)
		select {
		case <-ctx.Done():
			return nil
		case <-b.wake:
		}
	}
}

// compare reads the rows without an end, once, and records what has changed since.
func (b *Billing) compare(ctx context.Context) error {
	b.mu.Lock()
	read := b.known != nil
	b.mu.Unlock()
	if read {
		return nil
	}
	known, last, err := b.open(ctx)
	if err != nil {
		return fmt.Errorf("read the billed workspaces: %w", err)
	}
	places := make([]Place, 0, len(known))
	for uuid, w := range known {
		places = append(places, Place{w.Org, uuid})
	}
	b.mu.Lock()
	b.known, b.last = known, later(last, b.last)
	b.mu.Unlock()
	b.Changed(append(places, b.present.Places()...)...)
	return nil
}

// open reads the rows without an end, and the time of the last change of all.
func (b *Billing) open(ctx context.Context) (known map[string]BilledWorkspace, last time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var latest sql.NullString
	const changes = "SELECT max(at) FROM (SELECT max(valid_from) AS at FROM billing_workspaces UNION ALL SELECT max(valid_to) FROM billing_workspaces) t"
	if err := b.db.writes.QueryRowContext(ctx, changes).Scan(&latest); err != nil {
		return nil, last, err
	}
	if latest.Valid {
		if last, err = time.Parse(time.RFC3339Nano, latest.String); err != nil {
			return nil, last, err
		}
	}
	rows, err := b.db.writes.QueryContext(ctx,
		"SELECT workspace, name, org, org_name, path, cost_center, labels, phase FROM billing_workspaces WHERE valid_to IS NULL")
	if err != nil {
		return nil, last, err
	}
	defer func() { _ = rows.Close() }()
	known = map[string]BilledWorkspace{}
	for rows.Next() {
		var w BilledWorkspace
		if err := rows.Scan(&w.Workspace, &w.Name, &w.Org, &w.OrgName, &w.Path, &w.CostCenter, &w.Labels, &w.Phase); err != nil {
			return nil, last, err
		}
		known[w.Workspace] = w
	}
	return known, last, rows.Err()
}

// flush stores the pending changes.
func (b *Billing) flush(ctx context.Context) error {
	for {
		b.mu.Lock()
		batch := b.pending[:min(len(b.pending), b.size)]
		b.mu.Unlock()
		if len(batch) == 0 {
			return nil
		}
		if err := errors.Join(b.room(), ctx.Err()); err != nil {
			return err
		}
		if err := b.store(ctx, batch); err != nil {
			b.size = max(1, b.size/8)
			return fmt.Errorf("store the billed workspaces: %w", err)
		}
		b.size = min(2*b.size, maxBatch)
		b.mu.Lock()
		// It is shorter if the changes were too many since.
		b.pending = b.pending[min(len(batch), len(b.pending)):]
		b.mu.Unlock()
	}
}

// store stores changes in one transaction. Stored again, they change nothing: a change neither ends nor precedes what
// began after it.
func (b *Billing) store(ctx context.Context, batch []billed) error {
	ends := b.db.query("UPDATE billing_workspaces SET valid_to = ? WHERE workspace = ? AND valid_to IS NULL AND valid_from < ?")
	begins := b.db.query(`INSERT INTO billing_workspaces
		(id, workspace, name, org, org_name, path, cost_center, labels, phase, valid_from) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
		WHERE NOT EXISTS (SELECT 1 FROM billing_workspaces WHERE workspace = ? AND valid_from >= ?)`)
	return b.db.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for _, c := range batch {
			if _, err := tx.ExecContext(ctx, ends, c.at, c.Workspace, c.at); err != nil {
				return err
			}
			if c.gone {
				continue
			}
			if _, err := tx.ExecContext(ctx, begins,
				c.id, c.Workspace, c.Name, c.Org, c.OrgName, c.Path, c.CostCenter, c.Labels, c.Phase, c.at, c.Workspace, c.at); err != nil {
				return err
			}
		}
		return nil
	})
}

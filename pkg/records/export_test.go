package records

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"slices"

	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/audit"
)

// NewPostgres returns a DB of a PostgreSQL with the connections of a test.
func NewPostgres(pool *sql.DB) *DB {
	return &DB{postgres: true, writes: pool, reads: pool, migrating: make(chan struct{}, 1)}
}

// Once writes what was counted, and removes what is too old.
func (u *UsageWriter) Once(ctx context.Context) error {
	return errors.Join(u.db.Migrate(ctx), u.write(ctx), u.prune(ctx))
}

// Write writes what was counted into tables that are there.
func (u *UsageWriter) Write(ctx context.Context) error { return u.write(ctx) }

// Reads reports whether the present was compared with the database.
func (b *Billing) Reads() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.compared
}

// NewBoundedAccess is NewAccess with the number of changes that wait in memory.
func NewBoundedAccess(db *DB, facts Facts, most int, room func() error) *Access {
	a := NewAccess(db, facts, clock.RealClock{}, 0, room)
	a.most = most
	return a
}

// NewBillingTarget returns a BillingTarget of a connection.
func NewBillingTarget(db *sql.DB, table BillingTable) *BillingTarget {
	return &BillingTarget{db: db, name: table.String(), table: table}
}

// Push pushes what is final.
func (p *Pusher) Push(ctx context.Context) error { return p.push(ctx) }

// Statement is a SELECT with the values of its placeholders.
type Statement struct {
	Text   string
	Values []any
}

// Statements are what a Reader asks for a page, whose last event is at most at last.
func (d *DB) Statements(q audit.Query, last *audit.Position) ([]Statement, error) {
	within, filters, err := d.conditionsOf(q)
	if err != nil {
		return nil, err
	}
	find := Statement{d.lastOf(within), append(slices.Clone(within.values), maxScanned-1)}
	if last != nil {
		within.add("("+order+") >= (?, ?, ?, ?)", positionValues(*last)...)
	}
	within.and(filters)
	return []Statement{find, {d.pageOf(within), append(within.values, q.Limit+1)}}, nil
}

// Follower is a follower of the file of a chain, from its beginning on.
type Follower struct{ f follower }

// NewFollower returns a Follower.
func NewFollower(path, log string) *Follower { return &Follower{follower{path: path, log: log}} }

// Next returns the numbers of the next events, and how many were lost before them.
func (f *Follower) Next() (seqs []uint64, lost uint64, err error) {
	batch, lost, err := f.f.next(maxBatch)
	for _, r := range batch {
		seqs = append(seqs, r.Event.Seq)
	}
	return seqs, lost, err
}

// Close closes the file.
func (f *Follower) Close() { f.f.close() }

// AtEnd calls do when the end of the file that is open was read, once.
func (f *Follower) AtEnd(do func()) { f.f.file = &ending{f.f.file, do} }

type ending struct {
	source
	do func()
}

// ReadAt implements io.ReaderAt.
func (e *ending) ReadAt(p []byte, at int64) (int, error) {
	n, err := e.source.ReadAt(p, at)
	if do := e.do; do != nil && n == 0 && errors.Is(err, io.EOF) {
		e.do = nil
		do()
	}
	return n, err
}

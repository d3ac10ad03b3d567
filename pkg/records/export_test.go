package records

import (
	"context"
	"database/sql"
	"errors"
)

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
	return b.known != nil
}

// NewBillingTarget returns a BillingTarget of a connection.
func NewBillingTarget(db *sql.DB, table BillingTable) *BillingTarget {
	return &BillingTarget{db: db, name: table.String(), table: table}
}

// Push pushes what is final.
func (p *Pusher) Push(ctx context.Context) error { return p.push(ctx) }

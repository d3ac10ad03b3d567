package records

import (
	"context"
	"errors"
)

// Once writes what was counted, and removes what is too old.
func (u *UsageWriter) Once(ctx context.Context) error {
	return errors.Join(u.db.Migrate(ctx), u.write(ctx), u.prune(ctx))
}

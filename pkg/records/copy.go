package records

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/faroshq/kedge-hub/pkg/audit"
)

// Heads returns how far each chain goes in the database.
func (d *DB) Heads(ctx context.Context) ([]audit.Head, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	tx, err := d.reads.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("read the ends of the chains: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	return ends(ctx, tx, "audit_heads")
}

// Copy calls write with a consistent copy of a database that is a file, while others use it. The copy is a file beside
// the database until write has returned. room is asked first whether the disk has room for it.
func (d *DB) Copy(ctx context.Context, room func(size int64) error, write func(size int64, r io.Reader) error) (err error) {
	if d.postgres {
		return errors.New("it is no file")
	}
	size := int64(0)
	for _, name := range []string{d.path, d.path + "-wal"} {
		info, err := os.Stat(name)
		if err == nil {
			size += info.Size()
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := room(size); err != nil {
		return err
	}
	// A hub that was killed leaves one such file at most.
	name := d.path + ".copy"
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(name)) }()
	if _, err := d.reads.ExecContext(ctx, "VACUUM INTO ?", name); err != nil {
		return fmt.Errorf("copy the records: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return write(info.Size(), f)
}

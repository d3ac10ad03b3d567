package records

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	_ "modernc.org/sqlite" // the driver of the default database
)

// None is the value of a flag for no database.
const None = "none"

// sqliteScheme precedes the path of a file of SQLite.
const sqliteScheme = "sqlite:"

const (
	// migrateTimeout bounds a pending migration with the wait for another replica that carries it out. An index of a
	// hundred million events takes minutes; nothing but the records waits for it.
	migrateTimeout = time.Hour
	// writeTimeout bounds one transaction that writes, and the question whether a migration is pending.
	writeTimeout = 15 * time.Second
	// timeForm is the form in which times are written. Its texts have the order of the times.
	timeForm = "2006-01-02T15:04:05.000000Z07:00"
)

//go:embed migrations
var migrations embed.FS

// Options say where the records are.
type Options struct {
	// URL is that of a PostgreSQL, or sqlite: and a path.
	URL string
	// PasswordFile has the password of a PostgreSQL. It is read again for every connection.
	PasswordFile string
}

// DefaultURL is the URL of the database in a directory of data.
func DefaultURL(dir string) string { return sqliteScheme + filepath.Join(dir, "records", "records.db") }

// Validate returns an error without the URL, which can have a password.
func (o Options) Validate() error {
	if path, ok := strings.CutPrefix(o.URL, sqliteScheme); ok {
		if !filepath.IsAbs(path) {
			return errors.New("sqlite: must be followed by an absolute path")
		}
		return nil
	}
	if !strings.HasPrefix(o.URL, "postgres://") && !strings.HasPrefix(o.URL, "postgresql://") {
		return errors.New("must be postgres://USER@HOST/NAME, sqlite:/PATH or none")
	}
	if _, err := pgx.ParseConfig(o.URL); err != nil {
		return errors.New("is no valid URL of a PostgreSQL: postgres://USER@HOST/NAME?sslmode=verify-full")
	}
	return nil
}

// Local reports whether the database is a file on this machine.
func (o Options) Local() bool { return strings.HasPrefix(o.URL, sqliteScheme) }

// File is the path of the database, if that is a file.
func (o Options) File() (path string, ok bool) { return strings.CutPrefix(o.URL, sqliteScheme) }

// DB is the database of the records. Readers share no connection with what writes.
type DB struct {
	postgres bool
	// path is that of a file of SQLite.
	path          string
	writes, reads *sql.DB
	// migrating has a value during a migration: SQLite has no lock for it. The wait for a channel can end with a context.
	migrating chan struct{}
}

// Open returns a DB. It connects later, so that a database that is down delays no start.
func Open(o Options) (*DB, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if path, ok := strings.CutPrefix(o.URL, sqliteScheme); ok {
		return openSQLite(path)
	}
	_, pool, err := openPostgres(o)
	if err != nil {
		return nil, err
	}
	// A migration holds its lock with a connection of its own, and usage and billing are written beside the events.
	return &DB{postgres: true, writes: pool(4), reads: pool(4), migrating: make(chan struct{}, 1)}, nil
}

// openPostgres returns a func that makes pools of connections.
func openPostgres(o Options) (*pgx.ConnConfig, func(size int) *sql.DB, error) {
	config, err := pgx.ParseConfig(o.URL)
	if err != nil {
		return nil, nil, errors.New("is no valid URL of a PostgreSQL")
	}
	config.ConnectTimeout = min(max(config.ConnectTimeout, time.Second), 5*time.Second)
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "kedge-hub"
	}
	pool := func(size int) *sql.DB {
		db := stdlib.OpenDB(*config, stdlib.OptionBeforeConnect(func(_ context.Context, c *pgx.ConnConfig) error {
			if o.PasswordFile == "" {
				return nil
			}
			raw, err := os.ReadFile(o.PasswordFile)
			c.Password = strings.TrimRight(string(raw), "\r\n")
			return err
		}))
		db.SetMaxOpenConns(size)
		db.SetConnMaxIdleTime(time.Minute)
		return db
	}
	return config, pool, nil
}

// Local reports whether the database is a file on this machine.
func (d *DB) Local() bool { return !d.postgres }

// Exists reports whether there is a database, as far as it shows without connecting.
func Exists(o Options) bool {
	path, ok := strings.CutPrefix(o.URL, sqliteScheme)
	if !ok {
		return true
	}
	_, err := os.Stat(path)
	return err == nil
}

func openSQLite(path string) (*DB, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	pragmas := url.Values{"_pragma": {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(NORMAL)"}, "_txlock": {"immediate"}}
	name := (&url.URL{Scheme: "file", Path: path, RawQuery: pragmas.Encode()}).String()
	pool := func(size int) (*sql.DB, error) {
		db, err := sql.Open("sqlite", name)
		if err == nil {
			db.SetMaxOpenConns(size)
		}
		return db, err
	}
	d := &DB{path: path, migrating: make(chan struct{}, 1)}
	if d.writes, err = pool(1); err == nil {
		d.reads, err = pool(4)
	}
	return d, err
}

// Close closes all connections.
func (d *DB) Close() error { return errors.Join(d.writes.Close(), d.reads.Close()) }

// Check returns an error if the database does not answer, or takes no records. It changes nothing.
func (d *DB) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if !d.postgres {
		_, err := d.reads.ExecContext(ctx, "SELECT 1 FROM sqlite_master WHERE 1 = 0")
		return err
	}
	var readOnly, creates bool
	const asked = "SELECT current_setting('transaction_read_only')::boolean, " +
		"coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)"
	if err := d.reads.QueryRowContext(ctx, asked).Scan(&readOnly, &creates); err != nil {
		return err
	}
	switch {
	case readOnly:
		return errors.New("the database is read-only; name the primary server")
	case !creates:
		return errors.New("the user may not create tables, which a start and an upgrade do; " +
			"make it the owner of the database, or GRANT CREATE ON SCHEMA")
	}
	return nil
}

// Migrate makes or upgrades the tables. Replicas that start at once wait for one another.
func (d *DB) Migrate(ctx context.Context) error {
	select {
	case d.migrating <- struct{}{}:
		defer func() { <-d.migrating }()
	case <-ctx.Done():
		return fmt.Errorf("wait for another migration of the records: %w", ctx.Err())
	}
	provider, err := d.provider()
	if err != nil {
		return err
	}
	// What a migration leaves missing, the next round makes.
	for range 2 {
		pending, err := d.pending(ctx, provider)
		if err != nil || !pending {
			return err
		}
		if err := up(ctx, provider); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return d.whole(ctx)
}

func (d *DB) provider() (*goose.Provider, error) {
	dialect, dir, options := goose.DialectSQLite3, "migrations/sqlite", []goose.ProviderOption{}
	if d.postgres {
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 120))
		if err != nil {
			return nil, err
		}
		dialect, dir = goose.DialectPostgres, "migrations/postgres"
		options = append(options, goose.WithSessionLocker(promptLocker{locker}))
	}
	files, err := fs.Sub(migrations, dir)
	if err != nil {
		return nil, err
	}
	provider, err := goose.NewProvider(dialect, d.writes, files, options...)
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	return provider, nil
}

// promptLocker bounds the unlock, for which goose has a context without an end. The connection of one that fails is
// closed, and PostgreSQL takes its lock back.
type promptLocker struct{ lock.SessionLocker }

// SessionUnlock implements lock.SessionLocker.
func (l promptLocker) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, lastTimeout)
	defer cancel()
	return l.SessionLocker.SessionUnlock(ctx, conn)
}

// pending reports whether there is something to migrate. A database without an answer does not get the time of a migration.
func (d *DB) pending(ctx context.Context, provider *goose.Provider) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	pending, err := provider.HasPending(ctx)
	if err != nil {
		return false, fmt.Errorf("read the version of the records: %w", err)
	}
	if pending {
		return true, nil
	}
	// Without an answer nothing is known to be missing.
	if err := d.whole(ctx); err == nil || ctx.Err() != nil {
		return false, err
	}
	// Somebody dropped a table. Each migration makes only what is missing.
	if _, err := d.writes.ExecContext(ctx, "DELETE FROM goose_db_version WHERE version_id > 0"); err != nil {
		return false, fmt.Errorf("forget the version of the records: %w", err)
	}
	return true, nil
}

func up(ctx context.Context, provider *goose.Provider) error {
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate the records: %w", err)
	}
	return nil
}

// whole returns an error if a table is missing, or an index that statements name.
func (d *DB) whole(ctx context.Context) error {
	for _, table := range []string{
		"audit_events", "audit_heads", "audit_anchors", "billing_workspaces", "billing_pushes", "access_intervals", "access_looks",
		"usage_requests", "usage_callers", "usage_stored", "usage_orgs", "usage_replicas", "usage_hours", "billing_hours",
	} {
		if _, err := d.writes.ExecContext(ctx, "SELECT 1 FROM "+table+" WHERE 1 = 0"); err != nil { //nolint:gosec // one of these
			return err
		}
	}
	for _, index := range []condition{tenantIndex, tenantActorIndex, tenantObjectIndex, tenantWorkspaceIndex, rescueIndex} {
		where := " WHERE NOT outsider AND " + string(onlyRescues) + " AND 1 = 0"
		statement := d.query("SELECT 1 FROM " + d.from(conditions{index: index}) + where)
		if _, err := d.writes.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// query writes the placeholders of a statement, each a question mark, in the form of the database.
func (d *DB) query(statement string) string {
	if !d.postgres {
		return statement
	}
	var b strings.Builder
	n := 0
	for part := range strings.SplitSeq(statement, "?") {
		if n > 0 {
			b.WriteString("$" + strconv.Itoa(n))
		}
		b.WriteString(part)
		n++
	}
	return b.String()
}

// transact runs a transaction that writes.
func (d *DB) transact(ctx context.Context, do func(context.Context, *sql.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	tx, err := d.writes.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(ctx, tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// querier is the database, or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// read reads all rows of a statement. into returns the places of the columns of one.
func read[T any](ctx context.Context, from querier, statement string, values []any, into func(*T) []any) (all []T, err error) {
	rows, err := from.QueryContext(ctx, statement, values...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var one T
		if err := rows.Scan(into(&one)...); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

func timeText(t time.Time) string { return t.UTC().Format(timeForm) }

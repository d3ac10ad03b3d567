package records_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/records"
)

// silent is a PostgreSQL that has tables of a version, and does not answer a statement with a text.
type silent struct {
	on      string
	version int64
	// pause is the time before each row.
	pause time.Duration
	// asked is closed with the first statement that gets no answer.
	asked func()
}

// Connect implements driver.Connector.
func (s *silent) Connect(context.Context) (driver.Conn, error) { return silentConn{s}, nil }

// Driver implements driver.Connector.
func (s *silent) Driver() driver.Driver { return nil }

func (s *silent) answer(ctx context.Context, statement string) error {
	if !strings.Contains(statement, s.on) {
		return nil
	}
	s.asked()
	<-ctx.Done()
	return ctx.Err()
}

type silentConn struct{ *silent }

func (silentConn) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }
func (silentConn) Close() error                        { return nil }
func (silentConn) Begin() (driver.Tx, error)           { return silentTx{}, nil }

// BeginTx implements driver.ConnBeginTx.
func (c silentConn) BeginTx(ctx context.Context, _ driver.TxOptions) (driver.Tx, error) {
	return silentTx{}, c.answer(ctx, "BEGIN")
}

// ExecContext implements driver.ExecerContext.
func (c silentConn) ExecContext(ctx context.Context, statement string, _ []driver.NamedValue) (driver.Result, error) {
	return driver.ResultNoRows, c.answer(ctx, statement)
}

// QueryContext implements driver.QueryerContext.
func (c silentConn) QueryContext(ctx context.Context, statement string, _ []driver.NamedValue) (driver.Rows, error) {
	rows := &silentRows{columns: 1, left: [][]driver.Value{{true}}, pause: c.pause}
	switch {
	case strings.Contains(statement, "version_id, is_applied"):
		rows.columns, rows.left = 2, nil
		for v := c.version; v >= 0; v-- {
			rows.left = append(rows.left, []driver.Value{v, true})
		}
	case strings.Contains(statement, "max(version_id)"):
		rows.left[0][0] = c.version
	case strings.Contains(statement, "SELECT replica, log, seq, hash FROM audit_heads"):
		rows.columns, rows.left = 4, [][]driver.Value{{"r", "rights", int64(3), "h"}}
	case strings.Contains(statement, "SELECT event"):
		rows.left = [][]driver.Value{{"1"}, {"2"}, {"3"}}
	}
	return rows, c.answer(ctx, statement)
}

type silentTx struct{}

func (silentTx) Commit() error   { return nil }
func (silentTx) Rollback() error { return nil }

type silentRows struct {
	columns int
	left    [][]driver.Value
	pause   time.Duration
}

// Columns implements driver.Rows.
func (r *silentRows) Columns() []string { return make([]string, r.columns) }

// Close implements driver.Rows.
func (r *silentRows) Close() error { return nil }

// Next implements driver.Rows.
func (r *silentRows) Next(into []driver.Value) error {
	<-time.After(r.pause)
	if len(r.left) == 0 {
		return io.EOF
	}
	copy(into, r.left[0])
	r.left = r.left[1:]
	return nil
}

// A term of the leader ends although another session waits for a PostgreSQL that does not answer, and so does that one.
func TestMigrate_endsWithItsSession(t *testing.T) {
	t.Parallel()
	asked, done := make(chan struct{}), make(chan error, 2)
	pool := sql.OpenDB(&silent{on: "pg_tables", asked: sync.OnceFunc(func() { close(asked) })})
	defer func() { require.NoError(t, pool.Close()) }()
	db := records.NewPostgres(pool)
	ended := func(who string) {
		t.Helper()
		select {
		case err := <-done:
			require.ErrorIs(t, err, context.Canceled, who)
		case <-time.After(10 * time.Second):
			require.Fail(t, "it has not ended", who)
		}
	}
	first, endFirst := context.WithCancel(t.Context())
	defer endFirst()
	go func() { done <- db.Migrate(first) }()
	<-asked
	second, endSecond := context.WithCancel(t.Context())
	endSecond()
	go func() { done <- db.Migrate(second) }()
	ended("the one that waits")
	endFirst()
	ended("the one that asks")
}

// Only a migration that is pending gets the time of one.
func TestMigrate_givesAPostgreSQLWithoutAnswersNoHour(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		on      string
		version int64
		want    time.Duration
	}{
		"is there a version?":    {"pg_tables", 0, 15 * time.Second},
		"what is the version?":   {"version_id, is_applied", 0, 15 * time.Second},
		"are the tables there?":  {"FROM audit_heads", 10, 15 * time.Second},
		"are the indexes there?": {"NOT outsider", 10, 15 * time.Second},
		"a table is made":        {"CREATE TABLE", 0, time.Hour},
		"an index is made":       {"CREATE INDEX", 8, time.Hour},
		"the lock is given back": {"pg_advisory_unlock", 8, 2 * time.Second},
		"all is answered":        {"-- no statement", 10, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				pool := sql.OpenDB(&silent{on: c.on, version: c.version, asked: func() {}})
				defer func() { require.NoError(t, pool.Close()) }()
				began := time.Now()
				err := records.NewPostgres(pool).Migrate(t.Context())
				require.Equal(t, c.want, time.Since(began))
				if c.want == 0 {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, context.DeadlineExceeded)
					require.NotContains(t, err.Error(), "forget", "nothing is known to be missing")
				}
			})
		})
	}
}

// kedge-hub check asks before a start. It makes no table, and needs none.
func TestCheck_changesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		db := open(t, url)
		require.NoError(t, db.Check(t.Context()))
		_, err := raw(t, url).Exec("SELECT 1 FROM audit_events WHERE 1 = 0")
		require.Error(t, err, "no table was made")
		require.NoError(t, db.Migrate(t.Context()))
		require.NoError(t, db.Check(t.Context()))
	})
}

// A start would fail later, with the audit events of the hub in its files.
func TestCheck_saysWhatThePostgreSQLLacks(t *testing.T) {
	t.Parallel()
	url := newPostgres(t)
	name, _, _ := strings.Cut(strings.TrimPrefix(url, "postgres://kedge@/"), "?")
	for statement, says := range map[string]string{
		"ALTER DATABASE " + name + " SET default_transaction_read_only = on": "name the primary server",
		"ALTER DATABASE " + name + " SET search_path = nowhere":              "may not create tables",
	} {
		require.NoError(t, server().SQL(t.Context(), "postgres", statement))
		require.ErrorContains(t, open(t, url).Check(t.Context()), says)
		require.NoError(t, server().SQL(t.Context(), "postgres", "ALTER DATABASE "+name+" RESET ALL"))
	}
	require.NoError(t, open(t, url).Check(t.Context()), "the positive control")
}

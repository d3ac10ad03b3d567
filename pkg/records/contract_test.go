package records_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// column is a column of a table or view that readers and hubs of earlier versions use.
type column struct{ table, name string }

// columnsOf returns the types of all columns, and whether an INSERT must name them.
func columnsOf(t *testing.T, own *sql.DB, url string) (kinds map[column]string, required map[column]bool) {
	t.Helper()
	query := `SELECT table_name, column_name, data_type, is_nullable = 'NO' AND column_default IS NULL AND is_identity = 'NO'
		FROM information_schema.columns WHERE table_schema = 'public'`
	if strings.HasPrefix(url, "sqlite:") {
		query = `SELECT m.name, c.name, c.type, c."notnull" = 1 AND c.dflt_value IS NULL FROM sqlite_master m, pragma_table_info(m.name) c
			WHERE m.type IN ('table', 'view')`
	}
	rows, err := own.Query(query)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	kinds, required = map[column]string{}, map[column]bool{}
	for rows.Next() {
		var c column
		var kind string
		var must bool
		require.NoError(t, rows.Scan(&c.table, &c.name, &kind, &must))
		kinds[c], required[c] = kind, must
	}
	require.NoError(t, rows.Err())
	return kinds, required
}

// A hub of the version before works on the newest tables: each migration leaves the columns of the earlier ones as they
// are, and adds none to their tables that an INSERT has to name.
func TestMigrations_leaveTheEarlierOnesWorking(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		kind := "postgres"
		if strings.HasPrefix(url, "sqlite:") {
			kind = "sqlite"
			require.NoError(t, os.MkdirAll(filepath.Dir(url[len("sqlite:"):]), 0o700))
		}
		own := raw(t, url)
		files, err := filepath.Glob(filepath.Join("migrations", kind, "*.sql"))
		require.NoError(t, err)
		require.Greater(t, len(files), 3)
		before := map[column]string{}
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			up, _, found := strings.Cut(string(text), "-- +goose Down")
			require.True(t, found, file)
			_, err = own.Exec(up)
			require.NoError(t, err, file)
			after, required := columnsOf(t, own, url)
			tables := map[string]bool{}
			for c, kind := range before {
				tables[c.table] = true
				require.Equal(t, kind, after[c], "%s: %s.%s", file, c.table, c.name)
			}
			for c := range after {
				_, was := before[c]
				require.False(t, !was && tables[c.table] && required[c], "%s: %s.%s is new, and an earlier hub does not know it", file, c.table, c.name)
			}
			before = after
		}
		// What is there already is no error: a hub that finds a table missing makes all again.
		db := open(t, url)
		require.NoError(t, db.Migrate(t.Context()))
		// Nor is a migration that only a later hub has.
		_, err = own.Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, TRUE)")
		require.NoError(t, err)
		require.NoError(t, db.Migrate(t.Context()))
	})
}

// The role of the guide reads every table and view of the contract, and writes nothing.
func TestReaderRole_readsEverythingAndWritesNothing(t *testing.T) {
	t.Parallel()
	url, role := newPostgres(t), fmt.Sprintf("reader_%d", databases.Add(1))
	require.NoError(t, open(t, url).Migrate(t.Context()))
	own := raw(t, url)
	guide, err := os.ReadFile("../../deploy/README.md")
	require.NoError(t, err)
	grant := regexp.MustCompile(`(?s)CREATE ROLE reader LOGIN; (GRANT SELECT ON [^"]*) TO reader"`).FindSubmatch(guide)
	require.NotNil(t, grant)
	for _, s := range []string{"CREATE ROLE " + role + " LOGIN", string(grant[1]) + " TO " + role} {
		_, err := own.Exec(s)
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		_, err := own.Exec("DROP OWNED BY " + role + "; DROP ROLE " + role)
		require.NoError(t, err)
	})
	reader := raw(t, strings.Replace(url, "kedge@", role+"@", 1))
	kinds, _ := columnsOf(t, own, url)
	tables := map[string]bool{}
	for c := range kinds {
		tables[c.table] = c.table != "goose_db_version"
	}
	require.Greater(t, len(tables), 10)
	for table, documented := range tables {
		if !documented {
			continue
		}
		_, err := reader.Exec("SELECT * FROM " + table)
		require.NoError(t, err, "the guide grants SELECT on %s", table)
		require.Contains(t, string(guide), "\n| `"+table+"`", "the guide describes %s", table)
		for _, write := range []string{"INSERT INTO " + table + " SELECT * FROM " + table, "DELETE FROM " + table, "DROP TABLE " + table, "TRUNCATE " + table} {
			_, err := reader.Exec(write)
			require.Error(t, err, write)
		}
	}
	_, err = reader.Exec("CREATE TABLE own (id text)")
	require.ErrorContains(t, err, "permission denied")
}

package records

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// identifier is a name of a table or schema that is taken as it is, in quotes.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_$-]{0,62}$`)

// BillingTable is the name of a table of a PostgreSQL that gets rows to bill. Schema may be empty.
type BillingTable struct{ Schema, Name string }

// ParseBillingTable reads [schema.]table.
func ParseBillingTable(text string) (t BillingTable, err error) {
	schema, name, both := strings.Cut(text, ".")
	if !both {
		schema, name = "", text
	}
	if both && !identifier.MatchString(schema) || !identifier.MatchString(name) {
		return t, errors.New("must be TABLE or SCHEMA.TABLE, each of letters, digits, _, $ and -, at most 63 of them, without quotes")
	}
	return BillingTable{schema, name}, nil
}

// String is the name in SQL.
func (t BillingTable) String() string {
	if t.Schema == "" {
		return pgx.Identifier{t.Name}.Sanitize()
	}
	return pgx.Identifier{t.Schema, t.Name}.Sanitize()
}

// pushColumn is a column of the table.
type pushColumn struct{ name, kind, constraint string }

func pushColumns() []pushColumn {
	return []pushColumn{
		// The collation lets a program that follows the table find what is new by the key.
		{"event_id", "text", ` COLLATE "C" PRIMARY KEY`},
		{"starts", "timestamptz", ""},
		{"ends", "timestamptz", ""},
		{"org_uuid", "text", ""},
		{"org_name", "text", ""},
		{"workspace_uuid", "text", ""},
		{"workspace_name", "text", ""},
		{"path", "text", ""},
		{"cost_center", "text", ""},
		{"labels", "jsonb", ""},
		{"phase", "text", ""},
		{"objects", "bigint", ""},
		{"bytes", "bigint", ""},
		{"requests", "bigint", ""},
		{"writes", "bigint", ""},
		{"people", "bigint", ""},
		{"bots", "bigint", ""},
	}
}

// Create is a statement that makes a table that does.
func (t BillingTable) Create() string {
	columns := make([]string, 0, 17)
	for _, c := range pushColumns() {
		columns = append(columns, c.name+" "+c.kind+cmp.Or(c.constraint, " NOT NULL"))
	}
	return "CREATE TABLE " + t.String() + " (" + strings.Join(columns, ", ") + ")"
}

// into is the beginning of each statement that adds rows.
func (t BillingTable) into() string {
	columns := make([]string, 0, 17)
	for _, c := range pushColumns() {
		columns = append(columns, c.name)
	}
	return "INSERT INTO " + t.String() + " (" + strings.Join(columns, ", ") + ")"
}

// onceOnly ends each statement that adds rows: a row that is there stays as it is.
const onceOnly = " ON CONFLICT (event_id) DO NOTHING"

// BillingTarget is the table with its database.
type BillingTarget struct {
	db *sql.DB
	// name identifies the target where it is remembered how far it is.
	name  string
	table BillingTable
}

// OpenBillingTarget returns a BillingTarget. It connects later.
func OpenBillingTarget(o Options, table BillingTable) (*BillingTarget, error) {
	config, pool, err := openPostgres(o)
	if err != nil {
		return nil, err
	}
	return &BillingTarget{pool(2), fmt.Sprintf("%s:%d/%s %s", config.Host, config.Port, config.Database, table), table}, nil
}

// Close closes all connections.
func (t *BillingTarget) Close() error { return t.db.Close() }

// Check returns an error if the table does not take rows. It adds none, and says what would help.
func (t *BillingTarget) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	nothing := make([]string, 0, 17)
	for _, c := range pushColumns() {
		nothing = append(nothing, "NULL::"+c.kind)
	}
	_, err := t.db.ExecContext(ctx, t.table.into()+" SELECT "+strings.Join(nothing, ", ")+" WHERE false"+onceOnly)
	return t.explain(err)
}

// add adds rows that are not there yet, and returns their number.
func (t *BillingTarget) add(ctx context.Context, rows []billedInterval) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	columns := pushColumns()
	texts, values := make([]string, 0, len(rows)), make([]any, 0, len(columns)*len(rows))
	for _, r := range rows {
		row := make([]string, 0, len(columns))
		for i, v := range r.values() {
			values = append(values, v)
			row = append(row, fmt.Sprintf("$%d::%s", len(values), columns[i].kind))
		}
		texts = append(texts, "("+strings.Join(row, ", ")+")")
	}
	result, err := t.db.ExecContext(ctx, t.table.into()+" VALUES "+strings.Join(texts, ", ")+onceOnly, values...)
	if err != nil {
		return 0, t.explain(err)
	}
	return result.RowsAffected()
}

// The codes of PostgreSQL for what an administrator of the table has to mend.
const (
	noSchema, noTable, noColumn, noKey, notAllowed, otherType, missingValue = "3F000", "42P01", "42703", "42P10", "42501", "42804", "23502"
)

// explain adds the statement that would help.
func (t *BillingTarget) explain(err error) error {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return err
	}
	switch refused.Code {
	case noSchema, noTable, noColumn, otherType, missingValue:
		return fmt.Errorf("the billing table %s does not do (%s); this one would: %s", t.table, refused.Message, t.table.Create())
	case noKey:
		return fmt.Errorf("the billing table %s has no unique key on event_id (%s); this one would do: %s", t.table, refused.Message, t.table.Create())
	case notAllowed:
		return fmt.Errorf("the hub may not write the billing table %s (%s); its user needs SELECT and INSERT (GRANT SELECT, INSERT ON %s TO USER) on this table: %s",
			t.table, refused.Message, t.table, t.table.Create())
	}
	return err
}

package options

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCostCenters_areTheLinesOfTheFile(t *testing.T) {
	t.Parallel()
	o := New()
	o.Billing.CostCentersFile, o.Billing.DefaultCostCenter = filepath.Join(t.TempDir(), "centers"), "12"
	require.NoError(t, os.WriteFile(o.Billing.CostCentersFile, []byte("\ufeff4711\r\n\n 12 \nR&D, Zürich"), 0o600))
	c, err := o.Complete()
	require.NoError(t, err)
	listed, err := c.Billing.ReadCostCenters()
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"4711": true, "12": true, "R&D, Zürich": true}, listed)
	listed, err = new(BillingOptions).ReadCostCenters()
	require.NoError(t, err)
	require.Nil(t, listed, "without a file every value can be set")
}

func TestCostCenters_ofABadFileEndTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, test := range map[string]struct {
		content, initial, want string
	}{
		"empty":               {"\n \n", "", "has no cost center"},
		"too long":            {"1\n" + strings.Repeat("ä", 129), "", "line 2 has more than 128 characters"},
		"not text":            {"1\n\xff", "", "is not UTF-8"},
		"without the default": {"1\n2", "3", `does not have "3", which is --default-cost-center`},
	} {
		o := New()
		o.Billing.CostCentersFile, o.Billing.DefaultCostCenter = filepath.Join(dir, name), test.initial
		require.NoError(t, os.WriteFile(o.Billing.CostCentersFile, []byte(test.content), 0o600))
		_, err := o.Complete()
		require.ErrorContains(t, err, "--cost-centers-file: ", name)
		require.ErrorContains(t, err, test.want, name)
	}
}

func TestBillingTable_needsAPostgreSQL(t *testing.T) {
	t.Parallel()
	const records, finance = "postgres://kedge@db/records", "postgres://kedge@db/finance"
	for name, test := range map[string]struct {
		database, passwordFile        string
		table, target, targetPassword string
		url, want                     string
	}{
		"none":                    {},
		"that of the records":     {records, "p", "finance.hours", "", "", records, ""},
		"another":                 {"", "", "hours", finance, "q", finance, ""},
		"no table":                {records, "", "", finance, "", "", "--billing-database: gets nothing without --billing-table"},
		"a password alone":        {records, "", "hours", "", "q", "", "--billing-database-password-file: is the password of --billing-database"},
		"no records":              {"none", "", "hours", finance, "", "", "--billing-table: what is to be billed is in the records"},
		"records in SQLite":       {"", "", "hours", "", "", "", "--billing-table: is a table of a PostgreSQL"},
		"SQLite":                  {records, "", "hours", "sqlite:/hours", "", "", "--billing-database: is a table of a PostgreSQL"},
		"no URL of a PostgreSQL":  {records, "", "hours", "mysql://hush@db", "", "", "--billing-database: must be postgres://"},
		"statements, not a name":  {records, "", "hours; DROP TABLE x", "", "", "", "--billing-table: must be TABLE or SCHEMA.TABLE"},
		"the name of another one": {records, "", "a.b.c", "", "", "", "--billing-table: must be TABLE or SCHEMA.TABLE"},
	} {
		o := New()
		o.DataDir = t.TempDir()
		o.Records.Database, o.Records.PasswordFile = test.database, test.passwordFile
		o.Billing.TableName, o.Billing.Database, o.Billing.PasswordFile = test.table, test.target, test.targetPassword
		c, err := o.Complete()
		if test.want != "" {
			require.ErrorContains(t, err, test.want, name)
			require.NotContains(t, err.Error(), "hush", name)
			continue
		}
		require.NoError(t, err, name)
		database, _, ok := c.Billing.Table()
		require.Equal(t, test.url != "", ok, name)
		require.Equal(t, test.url, database.URL, name)
		if ok {
			require.Contains(t, []string{"p", "q"}, database.PasswordFile, name)
		}
	}
}

package options

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/faroshq/kedge-hub/pkg/records"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// BillingOptions are the flags of cost centers, and of the table of what is to be billed.
type BillingOptions struct {
	// DefaultCostCenter (--default-cost-center) is the cost center of a new Organization. Empty means none.
	DefaultCostCenter string
	// RequireCostCenter (--require-cost-center) refuses Organizations and Workspaces without a cost center,
	// but for personal Organizations and the Workspaces in them. Default false.
	RequireCostCenter bool
	// CostCentersFile (--cost-centers-file) has the cost centers that may be written, one in each line. Empty
	// allows all.
	CostCentersFile string
	// TableName (--billing-table) is the [schema.]table of a PostgreSQL to which what is to be billed is appended.
	// Empty means none.
	TableName string
	// Database (--billing-database) is the URL of the PostgreSQL with the table. Default: that of --database.
	Database string
	// PasswordFile (--billing-database-password-file) has the password of Database. It is read for every
	// connection.
	PasswordFile string

	// target is Database, or that of --database.
	target records.Options
}

func (o *BillingOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.DefaultCostCenter, "default-cost-center", o.DefaultCostCenter,
		"Cost center of a new organization that is created without one. A new workspace takes that of its organization.")
	fs.BoolVar(&o.RequireCostCenter, "require-cost-center", o.RequireCostCenter,
		"Refuse new organizations and workspaces without a cost center, and requests that take it away. "+
			"Personal organizations and the workspaces in them need none.")
	fs.StringVar(&o.CostCentersFile, "cost-centers-file", o.CostCentersFile,
		"File with the cost centers that people can set, one in each line. It is read again when it changes; "+
			"a cost center that is not in it any more stays where it stands. Without it every value can be set.")
	fs.StringVar(&o.TableName, "billing-table", o.TableName,
		"Table, [SCHEMA.]TABLE, of a PostgreSQL to which the hub appends a row for each workspace and --usage-interval, once and when the interval is final. "+
			"kedge-hub check and the log print the CREATE TABLE.")
	fs.StringVar(&o.Database, "billing-database", o.Database,
		"URL of the PostgreSQL with --billing-table: postgres://USER@HOST/NAME. Without it, that of --database.")
	fs.StringVar(&o.PasswordFile, "billing-database-password-file", o.PasswordFile,
		"File with the password of --billing-database. It is read for every connection, so that it can be replaced.")
}

func (o *BillingOptions) complete(fail func(flag, format string, args ...any), database records.Options) {
	o.completeTarget(fail, database)
	if utf8.RuneCountInString(o.DefaultCostCenter) > tenancy.MaxCostCenter {
		fail("default-cost-center", "has more than %d characters", tenancy.MaxCostCenter)
	}
	if _, err := o.ReadCostCenters(); err != nil {
		fail("cost-centers-file", "%v", err)
	}
}

// completeTarget completes what is appended to a table. The database is that of the records.
func (o *BillingOptions) completeTarget(fail func(flag, format string, args ...any), database records.Options) {
	switch {
	case o.TableName == "" && o.Database != "":
		fail("billing-database", "gets nothing without --billing-table; give both")
	case o.PasswordFile != "" && o.Database == "":
		fail("billing-database-password-file", "is the password of --billing-database; give both")
	case o.TableName == "":
	case database.URL == records.None:
		fail("billing-table", "what is to be billed is in the records; give --database, too")
	default:
		if _, err := records.ParseBillingTable(o.TableName); err != nil {
			fail("billing-table", "%v", err)
		}
		flag := "billing-table"
		if o.target = database; o.Database != "" {
			flag, o.target = "billing-database", records.Options{URL: o.Database, PasswordFile: o.PasswordFile}
		}
		if o.target.Local() {
			fail(flag, "is a table of a PostgreSQL; give --billing-database postgres://USER@HOST/NAME")
		} else if err := o.target.Validate(); err != nil {
			fail(flag, "%v", err)
		}
	}
}

// Table returns the table to which what is to be billed is appended, with its database. ok says that there is one.
func (o *BillingOptions) Table() (database records.Options, table records.BillingTable, ok bool) {
	table, err := records.ParseBillingTable(o.TableName)
	return o.target, table, err == nil
}

// ReadCostCenters reads the file CostCentersFile. It returns nil if there is none.
func (o *BillingOptions) ReadCostCenters() (map[string]bool, error) {
	if o.CostCentersFile == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(o.CostCentersFile)
	if err != nil {
		return nil, fmt.Errorf("%w; name a file that the hub can read", err)
	}
	if !utf8.Valid(raw) {
		return nil, errors.New("the file is not UTF-8")
	}
	listed, n := map[string]bool{}, 0
	for line := range strings.Lines(strings.TrimPrefix(string(raw), "\ufeff")) {
		n++
		value := strings.TrimSpace(line)
		if utf8.RuneCountInString(value) > tenancy.MaxCostCenter {
			return nil, fmt.Errorf("line %d has more than %d characters", n, tenancy.MaxCostCenter)
		}
		if value != "" {
			listed[value] = true
		}
	}
	if len(listed) == 0 {
		return nil, errors.New("the file has no cost center; give one in each line")
	}
	if o.DefaultCostCenter != "" && !listed[o.DefaultCostCenter] {
		return nil, fmt.Errorf("the file does not have %q, which is --default-cost-center", o.DefaultCostCenter)
	}
	return listed, nil
}

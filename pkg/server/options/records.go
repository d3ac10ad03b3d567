package options

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/records"
)

// RecordOptions are the flags of the records database.
type RecordOptions struct {
	// Database (--database) is the URL of a PostgreSQL, sqlite: and a path, or none. Default
	// {data-dir}/records/records.db with an embedded kcp, and none with an external one.
	Database string
	// PasswordFile (--database-password-file) has the password of the PostgreSQL. It is read for every
	// connection.
	PasswordFile string
	// AuditRetention (--audit-retention) is the time that audit events stay in the database. 0 means
	// for ever. Default 9600h.
	AuditRetention time.Duration
}

func newRecordOptions() RecordOptions { return RecordOptions{AuditRetention: 400 * 24 * time.Hour} }

func (o *RecordOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Database, "database", o.Database, "Database of the records: postgres://USER@HOST/NAME (PostgreSQL 14 or newer, for all replicas), sqlite:/PATH, or none. Without it, a file in records/ of --data-dir with an embedded kcp, and none with an external one. No request waits for it.")
	fs.StringVar(&o.PasswordFile, "database-password-file", o.PasswordFile, "File with the password of --database. It is read for every connection, so that it can be replaced.")
	fs.DurationVar(&o.AuditRetention, "audit-retention", o.AuditRetention, "Time that audit events stay in --database; 0 keeps them for ever.")
}

func (o *RecordOptions) complete(fail func(flag, format string, args ...any), embedded bool, dataDir, auditFile string) {
	explicit := o.Database != "" && o.Database != records.None
	switch {
	case explicit && auditFile == audit.Stdout:
		fail("database", "needs the audit log in files; give --audit-log-file a file, or set --database to none")
	case explicit:
	case o.Database == "" && embedded && auditFile != audit.Stdout:
		o.Database = records.DefaultURL(dataDir)
	default:
		o.Database = records.None
	}
	if o.Database != records.None {
		if err := o.Records().Validate(); err != nil {
			fail("database", "%v", err)
		}
	}
	if o.AuditRetention < 0 {
		fail("audit-retention", "%v is negative; give a time, or 0 to keep events for ever", o.AuditRetention)
	}
}

// Records returns the options of the records database.
func (o *RecordOptions) Records() records.Options {
	return records.Options{URL: o.Database, PasswordFile: o.PasswordFile}
}

package options

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/records"
)

// RecordOptions are the flags of the records database.
type RecordOptions struct {
	// Database (--database) is the URL of a PostgreSQL, sqlite: and a path for one replica, or none. Default
	// {data-dir}/records/records.db with an embedded kcp, and none with an external one.
	Database string
	// PasswordFile (--database-password-file) has the password of the PostgreSQL. It is read for every
	// connection.
	PasswordFile string
	// AuditRetention (--audit-retention) is the time that audit events, and access that has ended, stay in the
	// database. 0 means for ever. Default 9600h.
	AuditRetention time.Duration
	// UsageInterval (--usage-interval) is the length of the intervals of usage in the database. It divides an hour.
	// Default 1h.
	UsageInterval time.Duration
	// UsageRetention (--usage-retention) is the time that usage stays in the database. 0 means for ever.
	// Default 19200h.
	UsageRetention time.Duration
}

// minUsageInterval is the shortest interval of usage.
const minUsageInterval = 10 * time.Second

func newRecordOptions() RecordOptions {
	const day = 24 * time.Hour
	return RecordOptions{AuditRetention: 400 * day, UsageInterval: time.Hour, UsageRetention: 800 * day}
}

func (o *RecordOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Database, "database", o.Database,
		"Database of the records: postgres://USER@HOST/NAME (PostgreSQL 14 or newer, for all replicas), sqlite:/PATH (for one "+
			"replica: with an external kcp it needs --leader-elect=false), or none. Without it, a file in records/ of --data-dir "+
			"with an embedded kcp, and none with an external one. No request waits for it.")
	fs.StringVar(&o.PasswordFile, "database-password-file", o.PasswordFile, "File with the password of --database. It is read for every connection, so that it can be replaced.")
	fs.DurationVar(&o.UsageInterval, "usage-interval", o.UsageInterval, "Length of the intervals in which the usage of workspaces is counted in --database, from 10s to 1h, of which an hour is a multiple. Answers of the API add them up by hour or day.")
	fs.DurationVar(&o.UsageRetention, "usage-retention", o.UsageRetention, "Time that usage stays in --database; 0 keeps it for ever.")
	fs.DurationVar(&o.AuditRetention, "audit-retention", o.AuditRetention, "Time that audit events, and access that has ended, stay in --database; 0 keeps them for ever.")
}

// complete validates the options. replicas reports whether there can be other replicas.
func (o *RecordOptions) complete(
	fail func(flag, format string, args ...any), embedded, replicas bool, dataDir, auditFile string,
) {
	explicit := o.Database != "" && o.Database != records.None
	switch {
	case explicit && replicas && o.Records().Local():
		fail("database", "a file of SQLite is for one replica: each of several would store its own events alone; "+
			"give the URL of a PostgreSQL, or --leader-elect=false where there is never more than one replica")
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
	if o.UsageInterval < minUsageInterval || o.UsageInterval > time.Hour || time.Hour%o.UsageInterval != 0 {
		fail("usage-interval", "%v is not from 10s to 1h, or an hour is no multiple of it; give 10s, 1m or 1h, for example", o.UsageInterval)
	}
	if o.UsageRetention < 0 {
		fail("usage-retention", "%v is negative; give a time, or 0 to keep usage for ever", o.UsageRetention)
	}
	if o.AuditRetention < 0 {
		fail("audit-retention", "%v is negative; give a time, or 0 to keep events for ever", o.AuditRetention)
	}
}

// Records returns the options of the records database.
func (o *RecordOptions) Records() records.Options {
	return records.Options{URL: o.Database, PasswordFile: o.PasswordFile}
}

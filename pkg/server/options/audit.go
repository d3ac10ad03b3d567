package options

import (
	"github.com/spf13/pflag"

	"github.com/faroshq/kedge-hub/pkg/audit"
)

// AuditOptions are the flags of the rotation of the audit log.
type AuditOptions struct {
	// MaxSize (--audit-log-max-size) is the size in MiB at which the file is rotated. Default
	// 100.
	MaxSize int
	// MaxBackups (--audit-log-max-backups) is the number of rotated files that are kept. 0 means
	// all. Default 10.
	MaxBackups int
	// MaxAge (--audit-log-max-age) is the number of days that rotated files are kept. 0 means that
	// age does not matter. Default 0.
	MaxAge int
	// OrgWrites (--audit-org-writes) is the number of proxied writes of an Organization that have events of
	// their own in a minute; one event counts the rest. 0 means no limit. Default 3000.
	OrgWrites int
}

func newAuditOptions() AuditOptions {
	return AuditOptions{MaxSize: 100, MaxBackups: 10, OrgWrites: 3000}
}

func (o *AuditOptions) addFlags(fs *pflag.FlagSet) {
	fs.IntVar(&o.MaxSize, "audit-log-max-size", o.MaxSize, "Size in MiB at which each file of the audit log is renamed, with the time in its name, and a new file is started.")
	fs.IntVar(&o.MaxBackups, "audit-log-max-backups", o.MaxBackups, "Number of renamed files of each of the two that are kept; 0 means all.")
	fs.IntVar(&o.MaxAge, "audit-log-max-age", o.MaxAge, "Number of days that renamed files of the audit log are kept; 0 keeps them regardless of age.")
	fs.IntVar(&o.OrgWrites, "audit-org-writes", o.OrgWrites, "Number of proxied writes of one organization that have events of their own in a minute; "+
		"one event counts the rest by verb and resource. "+
		"One person or bot has a tenth of it for requests to the API that are refused or change nothing. 0 means no limit.")
}

func (o *AuditOptions) complete(fail func(flag, format string, args ...any)) {
	if o.MaxSize < 1 {
		fail("audit-log-max-size", "%d is not a size in MiB of at least 1", o.MaxSize)
	}
	for flag, n := range map[string]int{"audit-log-max-backups": o.MaxBackups, "audit-log-max-age": o.MaxAge, "audit-org-writes": o.OrgWrites} {
		if n < 0 {
			fail(flag, "%d is negative; give a number, or 0 for no limit", n)
		}
	}
}

// Audit returns the options of the audit log.
func (c Config) Audit() audit.Options {
	return audit.Options{File: c.AuditLogFile, MaxSize: c.AuditLog.MaxSize, MaxBackups: c.AuditLog.MaxBackups, MaxAge: c.AuditLog.MaxAge}
}

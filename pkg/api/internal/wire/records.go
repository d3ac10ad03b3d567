package wire

import (
	"time"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// Replicas converts how far the records of each replica are in the database. The result is never nil.
func Replicas(now time.Time, known []audit.Freshness) []rest.AuditReplica {
	answered := make([]rest.AuditReplica, 0, len(known))
	for _, f := range known {
		behind := max(0, now.Sub(f.AsOf)).Truncate(time.Second)
		answered = append(answered, rest.AuditReplica{Replica: f.Replica, AsOf: f.AsOf, BehindSeconds: int64(behind / time.Second)})
	}
	return answered
}

// NoRecords is the answer of a hub without a records database.
func NoRecords() error {
	return errs.New(errs.NotImplemented,
		"this hub has no records database; its operator can set --database, with the audit log in files (--audit-log-file)")
}

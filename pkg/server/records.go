package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/records"
	"github.com/faroshq/kedge-hub/pkg/storage"
	"github.com/faroshq/kedge-hub/pkg/usage"
)

// comparing is how long a start waits for the records database to compare the audit files with it.
const comparing = 3 * time.Second

// setAside puts audit files aside that are older than the records database, before the hub appends to them: the hub begins
// new chains. Where the database does not answer, or has not all that is in them, the shipper compares and refuses them. It
// returns the folder with the files, or nothing.
func (h *hub) setAside(ctx context.Context) (folder string, err error) {
	c := h.config
	if c.Records.Database == records.None || !records.Exists(c.Records.Records()) {
		return "", nil
	}
	ends, err := audit.Ends(c.Audit())
	if err != nil || len(ends) == 0 {
		return "", err
	}
	db, err := records.Open(c.Records.Records())
	if err != nil {
		return "", err
	}
	defer func() { _ = db.Close() }()
	asked, cancel := context.WithTimeout(ctx, comparing)
	defer cancel()
	outlived, err := db.Outlived(asked, ends)
	if err != nil {
		log.From(ctx).Info("the audit files are compared with the records database later: it does not answer", zap.Error(err))
	}
	if !outlived {
		return "", nil
	}
	folder, err = audit.SetAside(c.Audit(), time.Now())
	if err != nil && folder == "" {
		log.From(ctx).Error("the audit files are older than the records database, and cannot be put aside", zap.Error(err))
		return "", nil
	}
	log.From(ctx).Error("the audit files are older than the records database, which has all of them: the hub begins new chains",
		zap.String("aside", folder), zap.Stringers("ends", ends), zap.Error(err))
	return folder, err
}

// openRecords opens the records database, without connecting. It is nil without one, and where the audit log is in no
// files that it could follow.
func (h *hub) openRecords() (err error) {
	c := h.config.Records
	if c.Database == records.None || len(h.audit.Paths()) == 0 {
		return nil
	}
	if h.records, err = records.Open(c.Records()); err != nil {
		return fmt.Errorf("--database: %w", err)
	}
	if h.shipper, err = records.NewShipper(h.records, h.audit, c.AuditRetention, h.roomForRecords, h.registry); err != nil {
		return err
	}
	h.checks.AddDetail("records", h.shipper.Err)
	if h.usage, err = usage.NewCounter(c.UsageInterval, h.config.Clock, h.registry); err != nil {
		return err
	}
	replica := h.audit.Heads()[0].Replica
	if h.usageWriter, err = records.NewUsageWriter(h.records, h.usage, replica, c.UsageRetention, h.roomForRecords, h.registry); err != nil {
		return err
	}
	h.checks.AddDetail("usage", h.usageWriter.Err)
	if database, table, ok := h.config.Billing.Table(); ok {
		if h.billingTarget, err = records.OpenBillingTarget(database, table); err != nil {
			return fmt.Errorf("--billing-database: %w", err)
		}
	}
	return nil
}

// maxAuditReads is the number of answers from the records that one person gets at the same time. The database has
// few connections for readers.
const maxAuditReads = 2

// auditReads limits the reads of the audit log, of usage and of past access by each person: their rate, and those at the same time.
func auditReads(l *httpmw.Limits, perSecond float64) func(http.Handler) http.Handler {
	rate := l.PerPerson("audit_reads_per_person", perSecond)
	inFlight := l.InFlight("audit_reads_in_flight_per_person", maxAuditReads, func(*http.Request) bool { return true })
	return func(next http.Handler) http.Handler { return rate(inFlight(next)) }
}

// roomForRecords returns an error while the disk of a database on this machine is above a floor.
func (h *hub) roomForRecords() error {
	if !h.records.Local() {
		return nil
	}
	return h.storage.Err(storage.DiskStore)
}

// closeRecords closes the records database, and that of the billing table.
func (h *hub) closeRecords() {
	if h.billingTarget != nil {
		_ = h.billingTarget.Close()
	}
	if h.records != nil {
		_ = h.records.Close()
	}
}

package server

import (
	"fmt"
	"net/http"

	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/records"
	"github.com/faroshq/kedge-hub/pkg/storage"
	"github.com/faroshq/kedge-hub/pkg/usage"
)

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

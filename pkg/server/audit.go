package server

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/log"
)

// headsInterval is the time after which the hub records the ends of the chains of the audit log again.
const headsInterval = time.Hour

// recordHeads writes the ends of the chains to the log, where those who can write the files cannot change them.
func (h *hub) recordHeads(ctx context.Context) {
	for _, head := range h.audit.Heads() {
		if head.Seq > 0 {
			log.From(ctx).Info("audit head", zap.Stringer("head", head))
		}
	}
}

// runAudit records the ends of the chains until below ends, writes what the budget counts, and stores the events in
// the records database.
func (a *assembly) runAudit(below context.Context) {
	a.running.Go(func() { a.hub.budget.Run(below) })
	if a.hub.shipper != nil {
		a.running.Go(func() { a.hub.shipper.Run(below) })
	}
	a.running.Go(func() {
		ticker := a.hub.config.Clock.NewTicker(headsInterval)
		defer ticker.Stop()
		for {
			select {
			case <-below.Done():
				return
			case <-ticker.C():
				a.hub.recordHeads(below)
			}
		}
	})
}

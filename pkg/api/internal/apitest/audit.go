package apitest

import (
	"syscall"

	"github.com/faroshq/kedge-hub/pkg/audit"
)

// audit writes an event.
func (w *World) audit(e audit.Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unaudited == nil {
		w.events = append(w.events, e)
	}
	return w.unaudited
}

// Events returns the events of the audit log since the last call.
func (w *World) Events() []audit.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	events := w.events
	w.events = nil
	return events
}

// FillAuditLog makes every write of the audit log fail as on a full disk.
func (w *World) FillAuditLog() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unaudited = syscall.ENOSPC
}

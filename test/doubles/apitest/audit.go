package apitest

import (
	"encoding/json"
	"net/http"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

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

// Intent is a request that changes something, and what the audit log says of it.
type Intent struct {
	Call
	// Object is the name of the affected object, Facts what was decided, as JSON.
	Object, Facts string
	// Reduces says that the change is carried out also if the audit log cannot be written.
	Reduces bool
}

// RequireIntents sends each request in two new worlds: with an audit log, which must get an intent
// and an outcome, and with a full one.
func RequireIntents(t *testing.T, start func(t *testing.T) (http.Handler, *World), intents map[string]Intent) {
	t.Helper()
	for name, i := range intents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, w := start(t)
			answer := i.Do(h)
			require.Less(t, answer.Code, http.StatusMultipleChoices, answer.Body)
			events := w.Events()
			require.Len(t, events, 2)
			for stage, code := range map[audit.Stage]int{audit.StageIntent: 0, audit.StageOutcome: answer.Code} {
				e := events[0]
				if code != 0 {
					e = events[1]
				}
				require.Equal(t, stage, e.Stage)
				require.Equal(t, code, e.Code)
				require.Equal(t, i.As, e.Actor.User)
				require.Equal(t, i.Object, e.Object)
				require.False(t, e.Outsider)
				if code == 0 {
					require.True(t, e.Facts == nil || e.Facts.Receipt == nil)
				}
				facts, err := json.Marshal(WithoutReceipt(e.Facts))
				require.NoError(t, err)
				require.JSONEq(t, i.Facts, string(facts))
			}
			h, w = start(t)
			w.FillAuditLog()
			answer = i.Do(h)
			if i.Reduces {
				require.Less(t, answer.Code, http.StatusMultipleChoices, answer.Body)
				return
			}
			answer.Refused(t, http.StatusServiceUnavailable)
			require.Contains(t, answer.Body, "audit log")
		})
	}
}

// WithoutReceipt returns what an intent has of the facts of its outcome: only what was carried out has a receipt.
func WithoutReceipt(facts *audit.Facts) *audit.Facts {
	if facts == nil {
		return nil
	}
	intended := *facts
	if intended.Receipt = nil; !intended.Given() {
		return nil
	}
	return &intended
}

package framework

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	auditlog "github.com/faroshq/kedge-hub/pkg/audit"
)

// AuditEvents reads the events in the file of a hub's audit log. Each line must be an event without
// unknown fields.
func AuditEvents(t testing.TB, file string) []auditlog.Event {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	var events []auditlog.Event
	for line := range bytes.Lines(raw) {
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.DisallowUnknownFields()
		var e auditlog.Event
		require.NoError(t, decoder.Decode(&e), "%s", line)
		require.Equal(t, auditlog.APIVersion, e.APIVersion)
		events = append(events, e)
	}
	return events
}

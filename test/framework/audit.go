package framework

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	auditlog "github.com/faroshq/kedge-hub/pkg/audit"
)

// AuditText reads both files of a hub's audit log. file is that of rights.
func AuditText(t testing.TB, file string) []byte {
	t.Helper()
	rights, err := os.ReadFile(file)
	require.NoError(t, err)
	writes, err := os.ReadFile(auditlog.Options{File: file}.WritesFile())
	require.NoError(t, err)
	return append(rights, writes...)
}

// AuditEvents reads the events of a hub's audit log in the order of their times. file is that of rights. Each
// line must be an event without unknown fields.
func AuditEvents(t testing.TB, file string) []auditlog.Event {
	t.Helper()
	var events []auditlog.Event
	for line := range bytes.Lines(AuditText(t, file)) {
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.DisallowUnknownFields()
		var e auditlog.Event
		require.NoError(t, decoder.Decode(&e), "%s", line)
		require.Equal(t, auditlog.APIVersion, e.APIVersion)
		events = append(events, e)
	}
	slices.SortStableFunc(events, func(a, b auditlog.Event) int { return a.Time.Compare(b.Time) })
	return events
}

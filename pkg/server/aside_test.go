package server

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/records"
)

// A hub that starts on audit files from before what the database has begins new chains; a database that does not answer
// keeps no hub from its start.
func TestSetAside_isOfFilesThatAreOlderThanTheDatabase(t *testing.T) {
	t.Parallel()
	c := verifying(t)
	starts := func(url string) (aside string) {
		t.Helper()
		c.Records.Database = url
		aside, err := (&hub{config: c}).setAside(t.Context())
		require.NoError(t, err)
		return aside
	}
	own := c.Records.Database
	require.Equal(t, records.DefaultURL(c.DataDir), own)
	require.Empty(t, starts(own))
	l, closing, err := audit.Open(t.Context(), c.Audit(), prometheus.NewRegistry())
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, l.Write(audit.Event{Action: removal}))
	}
	closing()
	require.Empty(t, starts(own))
	ship(t, own[len("sqlite:"):], c.AuditLogFile)
	require.Empty(t, starts(own))
	raw, err := os.ReadFile(c.AuditLogFile)
	require.NoError(t, err)
	lost := raw[:bytes.LastIndexByte(bytes.TrimSpace(raw), '\n')+1]
	require.NoError(t, os.WriteFile(c.AuditLogFile, lost, 0o600))
	require.Empty(t, starts("postgres://127.0.0.1:1/kedge"))
	require.Empty(t, starts(records.None))
	require.FileExists(t, c.AuditLogFile)
	aside := starts(own)
	require.Equal(t, filepath.Dir(c.AuditLogFile), filepath.Dir(aside))
	require.NoFileExists(t, c.AuditLogFile)
	kept, err := os.ReadFile(filepath.Join(aside, "rights.jsonl"))
	require.NoError(t, err)
	require.Equal(t, lost, kept)
	require.Empty(t, starts(own))

	// The first event of the new chain says so, and the chains are whole.
	l, closing, err = audit.Open(t.Context(), c.Audit(), prometheus.NewRegistry())
	require.NoError(t, err)
	require.NoError(t, l.Write(audit.PutAside(aside)))
	closing()
	v := audit.NewVerifier()
	require.NoError(t, v.File(c.AuditLogFile))
	require.Empty(t, v.Done(l.Heads()[0]))
	require.Equal(t, uint64(1), l.Heads()[0].Seq)
}

package main

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/server"
)

// What does not fit together is refused by the name of the flag, before anything is read or written.
func TestRestoreModes_refuseWhatDoesNotFitTogether(t *testing.T) {
	t.Parallel()
	const at = "2026-11-24T02:00:00Z"
	replays := server.RestoreOptions{Replay: []string{"rights.jsonl"}}
	for name, c := range map[string]struct {
		modes restoreModes
		args  []string
		given server.RestoreOptions
		says  string
	}{
		"a file":                        {args: []string{"backup.tar.gz"}, given: replays},
		"external":                      {modes: restoreModes{external: true, backupAt: at}, given: replays},
		"report":                        {modes: restoreModes{report: true}},
		"release":                       {modes: restoreModes{release: true}},
		"nothing":                       {says: "name the file"},
		"external without a time":       {modes: restoreModes{external: true}, says: "--backup-at: with --external, give the time"},
		"external with half a time":     {modes: restoreModes{external: true, backupAt: "2026-11-24"}, says: "--backup-at"},
		"external with a file":          {modes: restoreModes{external: true, backupAt: at}, args: []string{"a"}, says: "--external"},
		"a file with a time":            {modes: restoreModes{backupAt: at}, args: []string{"a"}, says: "--backup-at"},
		"release with a file":           {modes: restoreModes{release: true}, args: []string{"a"}, says: "--release"},
		"release and report":            {modes: restoreModes{release: true, report: true}, says: "--release"},
		"report of an external restore": {modes: restoreModes{report: true, external: true}, says: "--report"},
		"release with a replay":         {modes: restoreModes{release: true}, given: replays, says: "--release"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := c.modes.check(c.args, c.given)
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				return
			}
			require.NoError(t, err)
			if c.modes.external {
				require.Equal(t, time.Date(2026, 11, 24, 2, 0, 0, 0, time.UTC), got)
			}
		})
	}
}

// Shards are saved one after the other. What ended between the first snapshot and the others is in none of it.
func TestRestore_asksForTheTimeOfTheEarliestSnapshot(t *testing.T) {
	t.Parallel()
	cmd := restoreCommand(&server.Options{})
	require.Contains(t, cmd.Flags().Lookup("backup-at").Usage, "when the earliest snapshot of all shards of kcp was begun")
	guide, err := os.ReadFile("../../deploy/README.md")
	require.NoError(t, err)
	require.Contains(t, string(guide), "`--backup-at` is when the earliest snapshot of all shards was **begun**")
	require.Contains(t, string(guide), "a restore asks for this time, that of the earliest snapshot of all shards")
}

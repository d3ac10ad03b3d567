package audit_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/audit"
)

func TestEnds_areThoseOfTheFiles(t *testing.T) {
	t.Parallel()
	for _, none := range []string{"", audit.Stdout, os.DevNull, filepath.Join(t.TempDir(), "rights.jsonl")} {
		ends, err := audit.Ends(audit.Options{File: none})
		require.NoError(t, err)
		require.Empty(t, ends, none)
	}
	o := audit.Options{File: filepath.Join(t.TempDir(), "audit.log"), MaxSize: 1}
	written := func(events ...audit.Event) (heads []audit.Head) {
		l, closing, err := audit.Open(t.Context(), o, prometheus.NewRegistry())
		require.NoError(t, err)
		defer closing()
		for _, e := range events {
			require.NoError(t, l.Write(e))
		}
		return l.Heads()
	}
	heads := written(audit.Event{Action: "POST /api/orgs"})
	ends, err := audit.Ends(o)
	require.NoError(t, err)
	require.Equal(t, heads[:1], ends)
	// Files that were put away are moved, too.
	heads = written(append(slices.Repeat([]audit.Event{padded("POST /api/orgs")}, 150), audit.Event{Action: "kubernetes create"})...)
	ends, err = audit.Ends(o)
	require.NoError(t, err)
	require.Equal(t, heads, ends)
	files, err := audit.Files(o.File)
	require.NoError(t, err)
	require.Len(t, files, 2)

	now := time.Now()
	folder, err := audit.SetAside(o, now)
	require.NoError(t, err)
	for _, name := range append(files, o.WritesFile()) {
		require.FileExists(t, filepath.Join(folder, filepath.Base(name)))
	}
	v := audit.NewVerifier()
	for _, name := range append(files, o.WritesFile()) {
		require.NoError(t, v.File(filepath.Join(folder, filepath.Base(name))))
	}
	require.Empty(t, v.Done(heads...))
	ends, err = audit.Ends(o)
	require.NoError(t, err)
	require.Empty(t, ends)
	require.NotEqual(t, heads[0].Replica, written(audit.PutAside(folder))[0].Replica)

	// Nothing moves to where something is.
	folder, err = audit.SetAside(o, now)
	require.ErrorIs(t, err, os.ErrExist)
	require.Empty(t, folder)
	require.FileExists(t, o.File)
}

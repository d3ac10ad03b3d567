package options

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each of several replicas would store its own events alone, and answer another part of them.
func TestDatabase_ofSQLiteIsForOneReplica(t *testing.T) {
	t.Parallel()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, nil, 0o600))
	const sqlite, postgres = "sqlite:/records.db", "postgres://kedge@127.0.0.1/records"
	for name, c := range map[string]struct {
		kubeconfig, database string
		leaderElect, refused bool
	}{
		"several replicas":            {kubeconfig, sqlite, true, true},
		"one replica":                 {kubeconfig, sqlite, false, false},
		"PostgreSQL":                  {kubeconfig, postgres, true, false},
		"none":                        {kubeconfig, "none", true, false},
		"nothing said":                {kubeconfig, "", true, false},
		"the embedded kcp":            {"", sqlite, true, false},
		"the embedded kcp by default": {"", "", true, false},
	} {
		o := New()
		o.KCPKubeconfig, o.Records.Database, o.LeaderElect = c.kubeconfig, c.database, c.leaderElect
		_, err := o.Complete()
		if !c.refused {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, "--database: a file of SQLite is for one replica", name)
		require.ErrorContains(t, err, "PostgreSQL, or --leader-elect=false", name)
	}
}

package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/backup"
	"github.com/faroshq/kedge-hub/pkg/health"
	"github.com/faroshq/kedge-hub/pkg/records"
	"github.com/faroshq/kedge-hub/pkg/restore"
)

// opened is a hub that has looked into its data folder.
func opened(t *testing.T, c Config) (*hub, error) {
	t.Helper()
	h := &hub{config: c, registry: prometheus.NewRegistry(), checks: health.NewChecks()}
	if err := h.openRestored(); err != nil {
		return h, err
	}
	h.purges.audit = audit.New(t.Context(), t.Output())
	return h, nil
}

// chainOf writes a chain of rights with some events, and returns its file and the head after the first of them.
func chainOf(t *testing.T, actions ...string) (file string, first audit.Head) {
	t.Helper()
	file = audit.DefaultFile(t.TempDir())
	l, closing, err := audit.Open(t.Context(), audit.Options{File: file, MaxSize: 1}, prometheus.NewRegistry())
	require.NoError(t, err)
	defer closing()
	for i, action := range actions {
		require.NoError(t, l.Write(audit.Event{ID: action, Stage: audit.StageOutcome, Code: http.StatusOK, Action: action, Org: "o", Object: "bob"}))
		if i == 0 {
			for _, h := range l.Heads() {
				if h.Log == audit.Rights {
					first = h
				}
			}
		}
	}
	require.Positive(t, first.Seq)
	return file, first
}

const removal = "DELETE /api/orgs/{org}/members/{user}"

// A hub that starts from a restore that was cut off, or without its history, would give rights back.
func TestRun_startsOnNoHalfOfARestore(t *testing.T) {
	t.Parallel()
	run := func(c Config) error { return Run(t.Context(), c, nil, io.Discard) }
	file, head := chainOf(t, "add member", removal)
	place := func(c Config, o restore.Order, files ...string) {
		require.NoError(t, restore.Place(c.DataDir, o, files))
	}
	for name, tt := range map[string]struct {
		left func(c Config)
		says string
	}{
		"cut off while it filled the folder": {func(c Config) {
			require.NoError(t, os.Mkdir(filepath.Join(c.DataDir, backup.Partial), 0o700))
		}, "was interrupted"},
		"cut off before the order": {func(c Config) {
			require.NoError(t, os.Mkdir(filepath.Join(c.DataDir, backup.RestoreDir), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(c.DataDir, backup.ManifestFile), []byte("{}"), 0o600))
		}, "was interrupted before it said what to replay"},
		"no file":  {func(c Config) { place(c, restore.Order{BackupAt: time.Now(), Heads: []audit.Head{head}}) }, "--accept-lost-history"},
		"no chain": {func(c Config) { place(c, restore.Order{BackupAt: time.Now()}, file) }, "--accept-lost-history"},
		"lost copies": {func(c Config) {
			place(c, restore.Order{BackupAt: time.Now(), Heads: []audit.Head{head}, AcceptLostHistory: true}, file)
			require.NoError(t, os.RemoveAll(filepath.Join(c.DataDir, backup.RestoreDir, "history")))
		}, "no such file"},
	} {
		c := verifying(t)
		tt.left(c)
		require.ErrorContains(t, run(c), tt.says, name)
		held, err := restore.Held(c.DataDir)
		require.NoError(t, err)
		require.False(t, held, name)
	}
	external := verifying(t, func(o *Options) {
		o.KCPKubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
		require.NoError(t, os.WriteFile(o.KCPKubeconfig, nil, 0o600))
	})
	place(external, restore.Order{BackupAt: time.Now(), Heads: []audit.Head{head}}, file)
	require.ErrorContains(t, run(external), "start the hub without --kcp-kubeconfig")
}

func TestRestored_holdsPurgesUntilTheirRelease(t *testing.T) {
	t.Parallel()
	c := verifying(t)
	h, err := opened(t, c)
	require.NoError(t, err)
	require.Nil(t, h.restored, "a hub that was not restored")
	require.False(t, h.purges.held.Load())

	file, head := chainOf(t, "add member", removal)
	require.NoError(t, restore.Place(c.DataDir, restore.Order{BackupAt: time.Now(), Heads: []audit.Head{head}}, []string{file}))
	metrics := func(h *hub, mode, held string) {
		t.Helper()
		for name, value := range map[string]string{"kedge_restore_mode": mode, "kedge_purges_held": held} {
			found, err := h.registry.Gather()
			require.NoError(t, err)
			for _, f := range found {
				if f.GetName() == name {
					require.Equal(t, value == "1", f.GetMetric()[0].GetGauge().GetValue() == 1, name)
				}
			}
		}
		require.Equal(t, 2, testutil.CollectAndCount(h.registry))
	}
	// It is killed as often as it likes before it has ended everything.
	for range 2 {
		h, err = opened(t, c)
		require.NoError(t, err)
		require.Len(t, h.restored.plan.Steps, 1)
		require.True(t, h.purges.held.Load())
		metrics(h, "1", "1")
	}
	h.restored.waiting(1, errors.New("kcp is down"))
	require.EqualError(t, h.restored.Err(), "the hub is in restore mode: 1 of 1 endings are left: kcp is down")
	ready := httptest.NewRecorder()
	h.checks.Details(ready, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", http.NoBody))
	require.Equal(t, http.StatusServiceUnavailable, ready.Code)
	require.Contains(t, ready.Body.String(), "[-]restore not ready: the hub is in restore mode: 1 of 1")
	front := health.NewFront(h.checks, http.NotFoundHandler())
	public := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		front.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		require.Equal(t, http.StatusServiceUnavailable, w.Code, path)
		return w
	}
	require.Equal(t, "not ready: the hub is in restore mode: 1 of 1 endings are left", public("/readyz").Body.String(), "without what is for operators")
	refused := public("/api/orgs")
	require.Contains(t, refused.Body.String(), "restore mode: 1 of 1 endings are left; it serves by itself")
	require.Equal(t, "10", refused.Header().Get("Retry-After"))
	// What ends nothing does not run yet.
	ran := make(chan string, 2)
	for _, name := range []string{"invitation", "user"} {
		go h.restored.after(name, func(context.Context) { ran <- name })(t.Context())
	}
	require.Equal(t, "user", <-ran)
	require.Empty(t, ran)
	h.restored.end()
	require.Equal(t, "invitation", <-ran)
	require.NoError(t, h.restored.extend(t.Context()))
	require.Equal(t, "not ready", public("/readyz").Body.String())
	require.Contains(t, public("/api/orgs").Body.String(), "still starting")
	metrics(h, "0", "1")
	require.NoError(t, restore.Done(c.DataDir))

	h, err = opened(t, c)
	require.NoError(t, err)
	require.Nil(t, h.restored)
	require.True(t, h.purges.held.Load(), "also after a restart")
	require.ErrorContains(t, Release(t.Context(), c, io.Discard), "no hub runs with this --data-dir; start it first")
	audited := &bytes.Buffer{}
	h.purges.audit = audit.New(t.Context(), audited)
	serving(t, c, h.purges.release)
	for range 2 {
		out := &strings.Builder{}
		require.NoError(t, Release(t.Context(), c, out))
		require.Contains(t, out.String(), "is purged from now on")
	}
	require.False(t, h.purges.held.Load())
	require.Contains(t, audited.String(), `"action":"release purges"`)
	metrics(h, "0", "0")
	h, err = opened(t, c)
	require.NoError(t, err)
	require.False(t, h.purges.held.Load())
}

func TestRestored_refusesTheOperatorUntilItServes(t *testing.T) {
	t.Parallel()
	c := verifying(t)
	r := newRestored()
	require.Empty(t, r.says())
	r.order(folder(c.DataDir), restore.Plan{Steps: make([]restore.Step, 3)})
	r.waiting(2, nil)
	serving(t, c, r.ServeHTTP)
	to := filepath.Join(t.TempDir(), "file")
	const says = "the running hub says: the hub is in restore mode: 2 of 3 endings are left; repeat this when it serves"
	require.ErrorContains(t, Backup(t.Context(), c, BackupOptions{To: to}, io.Discard, io.Discard), says)
	require.NoFileExists(t, to)
	require.ErrorContains(t, Release(t.Context(), c, io.Discard), says)
}

func TestRestore_leavesToTheNextStartWhatEnded(t *testing.T) {
	t.Parallel()
	file, head := chainOf(t, "add member", "rotate", removal)
	from := &bytes.Buffer{}
	etcd, size := storeOf(1 << 10)
	_, err := backup.Write(t.Context(), from, backup.Source{
		Dir: t.TempDir(), Now: time.Now, Heads: func(context.Context) ([]audit.Head, []audit.Head, error) { return []audit.Head{head}, nil, nil },
		Etcd: func(_ context.Context, write func(revision, size int64, r io.Reader) error) error {
			return write(42, int64(size), etcd)
		},
	})
	require.NoError(t, err)
	saved := filepath.Join(t.TempDir(), "backup")
	require.NoError(t, os.WriteFile(saved, from.Bytes(), 0o600))
	o := RestoreOptions{From: saved, Replay: []string{file}, Etcd: func(string, string) error { return nil }}
	run := func(c Config, change func(o *RestoreOptions)) (string, error) {
		out, o := &strings.Builder{}, o
		if change != nil {
			change(&o)
		}
		err := Restore(t.Context(), c, o, bytes.NewReader(from.Bytes()), out)
		return out.String(), err
	}
	for name, change := range map[string]func(o *RestoreOptions){
		"a file":                nil,
		"a folder":              func(o *RestoreOptions) { o.Replay = []string{filepath.Dir(file)} },
		"of the standard input": func(o *RestoreOptions) { o.From = "-" },
	} {
		c := verifying(t)
		out, err := run(c, change)
		require.NoError(t, err, name)
		require.Contains(t, out, "etcd at revision 42", name)
		require.Contains(t, out, "its audit log ends at event 3", name)
		require.Contains(t, out, "ends 1 times what ended after the backup", name)
		h, err := opened(t, c)
		require.NoError(t, err, name)
		require.Len(t, h.restored.plan.Steps, 1, name)
		_, err = run(c, change)
		require.Error(t, err, "%s: into a used folder", name)
	}
	c := verifying(t)
	out, err := run(c, func(o *RestoreOptions) { o.Replay = nil })
	require.ErrorContains(t, err, "its hub will not start")
	require.ErrorContains(t, err, "--accept-lost-history")
	require.Contains(t, out, "etcd at revision 42")
	_, err = opened(t, c)
	require.ErrorContains(t, err, "--accept-lost-history")
	c = verifying(t)
	out, err = run(c, func(o *RestoreOptions) { o.Replay, o.AcceptLostHistory = nil, true })
	require.NoError(t, err)
	require.Contains(t, out, "not known, as you accepted")
	_, err = opened(t, c)
	require.NoError(t, err)

	// The disk of the lost hub was full at its end, as the mark of its file says.
	require.NoError(t, os.Truncate(file+".whole", 0))
	c = verifying(t)
	_, err = run(c, nil)
	require.ErrorContains(t, err, "events behind its end could not be written")
	_, err = opened(t, c)
	require.ErrorContains(t, err, "--accept-lost-history")
	_, err = run(verifying(t), func(o *RestoreOptions) { o.AcceptLostHistory = true })
	require.NoError(t, err)
}

// What is wrong with the command line leaves the folder empty.
func TestRestore_fillsNothingForAWrongCommand(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	for name, tt := range map[string]struct {
		o    RestoreOptions
		says string
	}{
		"no backup":       {RestoreOptions{From: filepath.Join(empty, "none")}, "no such file"},
		"no audit file":   {RestoreOptions{From: "-", Replay: []string{filepath.Join(empty, "none")}}, "--replay:"},
		"an empty folder": {RestoreOptions{From: "-", Replay: []string{empty}}, "has no rights.jsonl"},
		"no folder":       {RestoreOptions{From: "-", Replay: []string{os.DevNull}}, "neither a file nor a folder"},
		"something else":  {RestoreOptions{From: "-"}, "read the backup"},
	} {
		c := verifying(t)
		require.ErrorContains(t, Restore(t.Context(), c, tt.o, strings.NewReader("something that is no backup"), io.Discard), tt.says, name)
		require.Empty(t, filesIn(t, c.DataDir), name)
	}
	external := verifying(t, func(o *Options) {
		o.KCPKubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
		require.NoError(t, os.WriteFile(o.KCPKubeconfig, nil, 0o600))
	})
	require.ErrorContains(t, Restore(t.Context(), external, RestoreOptions{From: "-"}, nil, io.Discard), "deploy/README.md")
}

// The records database is read where the files are lost.
func TestRestore_readsTheRecordsOfTheLostHub(t *testing.T) {
	t.Parallel()
	file, head := chainOf(t, "add member", "rotate", removal)
	stored := filepath.Join(t.TempDir(), "records.db")
	ship(t, stored, file)
	gone := audit.Head{Replica: "gone", Log: audit.Rights, Seq: 9, Hash: "h"}
	saved := filepath.Join(t.TempDir(), "backup")
	f, err := os.Create(saved)
	require.NoError(t, err)
	etcd, size := storeOf(1 << 10)
	_, err = backup.Write(t.Context(), f, backup.Source{
		Dir: t.TempDir(), Now: time.Now, Heads: func(context.Context) ([]audit.Head, []audit.Head, error) {
			return []audit.Head{head}, []audit.Head{gone}, nil
		},
		Etcd: func(_ context.Context, write func(revision, size int64, r io.Reader) error) error {
			return write(42, int64(size), etcd)
		},
		Records: func(context.Context, func(int64, io.Reader) error) error { return errors.New("there is no room") },
	})
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for name, o := range map[string]RestoreOptions{
		"alone":      {Database: stored},
		"and a file": {Database: stored, Replay: []string{file}},
	} {
		c := verifying(t)
		o.From, o.Etcd = saved, func(string, string) error { return nil }
		out := &strings.Builder{}
		require.NoError(t, Restore(t.Context(), c, o, nil, out), name)
		require.Contains(t, out.String(), "its audit log ends at event 3", name)
		require.Contains(t, out.String(), "does not have the records database: there is no room", name)
		h, err := opened(t, c)
		require.NoError(t, err, name)
		require.Len(t, h.restored.plan.Steps, 1, name)
		left, err := filepath.Glob(filepath.Join(c.DataDir, backup.RestoreDir, "records-*"))
		require.NoError(t, err)
		require.Empty(t, left)
	}
	for database, says := range map[string]string{
		filepath.Join(t.TempDir(), "none"): "--replay-database: stat",
		saved:                              "--replay-database none does without it",
		"postgres://127.0.0.1:1/kedge":     "--replay-database none does without it",
	} {
		c := verifying(t)
		require.ErrorContains(t, Restore(t.Context(), c, RestoreOptions{From: saved, Database: database}, nil, io.Discard), says, database)
		require.Empty(t, filesIn(t, c.DataDir), database)
	}
}

// A records database that answers no more when its events are read is named by its flag, too.
func TestRestore_saysWhichDatabaseFails(t *testing.T) {
	t.Parallel()
	stored, err := records.Open(records.Options{URL: "sqlite:" + filepath.Join(t.TempDir(), "records.db")})
	require.NoError(t, err)
	require.NoError(t, stored.Close())
	dir := t.TempDir()
	err = withRecords(t.Context(), dir, restore.Order{}, nil, stored, func([]string) error { return nil })
	require.ErrorContains(t, err, "--replay-database, or else --database: ")
	require.ErrorContains(t, err, "--replay-database none does without it")
	require.Empty(t, filesIn(t, dir))
}

// ship stores the events of a file in a records database.
func ship(t *testing.T, path, file string) {
	t.Helper()
	db, err := records.Open(records.Options{URL: "sqlite:" + path})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	l, closing, err := audit.Open(t.Context(), audit.Options{File: file, MaxSize: 1}, prometheus.NewRegistry())
	require.NoError(t, err)
	defer closing()
	shipper, err := records.NewShipper(db, l, 0, func() error { return nil }, prometheus.NewRegistry())
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); shipper.Run(ctx) }()
	defer func() { stop(); <-done }()
	require.Eventually(t, func() bool {
		heads, err := db.Heads(t.Context())
		return err == nil && slices.ContainsFunc(heads, func(h audit.Head) bool { return h.Log == audit.Rights && h.Seq == 3 })
	}, time.Minute, 10*time.Millisecond)
}

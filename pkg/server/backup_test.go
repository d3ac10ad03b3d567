package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/backup"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp/connect"
)

// newSaved returns the backups of a hub with an etcd that has this content.
func newSaved(t *testing.T, c Config, etcd io.Reader, size int) *backups {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(c.DataDir, "kcp"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(c.DataDir, "kcp", "sa.key"), []byte("key"), 0o600))
	return &backups{file: filepath.Join(c.DataDir, "backup.json"), source: backup.Source{
		Dir: c.DataDir, Now: time.Now,
		Heads: func(context.Context) ([]audit.Head, []audit.Head, error) { return nil, nil, nil },
		Etcd: func(_ context.Context, write func(revision, size int64, r io.Reader) error) error {
			return write(42, int64(size), etcd)
		},
	}}
}

// storeOf is an etcd of size bytes that can be read once.
func storeOf(size int) (io.Reader, int) {
	content := bytes.Repeat([]byte("x"), size)
	sum := sha256.Sum256(content)
	return bytes.NewReader(append(content, sum[:]...)), size + len(sum)
}

func (b *backups) mux() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+backupPath, b.serve)
	mux.HandleFunc("POST "+storedPath, b.wasStored)
	return mux
}

// unpack restores a backup, with an etcd that takes everything.
func unpack(t *testing.T, raw []byte) {
	t.Helper()
	_, err := backup.Unpack(bytes.NewReader(raw), t.TempDir(), func(string, string) error { return nil })
	require.NoError(t, err)
}

// filesIn are the names in a folder.
func filesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestBackup_storesWhatTheRunningHubSends(t *testing.T) {
	t.Parallel()
	c := verifying(t)
	b := newSaved(t, c, nil, 0)
	b.source.Etcd = func(_ context.Context, write func(revision, size int64, r io.Reader) error) error {
		r, size := storeOf(1 << 20)
		return write(42, int64(size), r)
	}
	require.Zero(t, testutil.CollectAndCount(b), "nobody is alerted before the first one")
	serving(t, c, b.mux().ServeHTTP)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	for range 2 {
		out := &strings.Builder{}
		require.NoError(t, Backup(t.Context(), c, BackupOptions{To: file}, out, io.Discard))
		require.Contains(t, out.String(), file+": etcd at revision 42, as of ")
	}
	require.Equal(t, []string{"file"}, filesIn(t, dir))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	require.Less(t, info.Size(), int64(1<<20))
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	unpack(t, raw)

	out, notes := &bytes.Buffer{}, &strings.Builder{}
	require.NoError(t, Backup(t.Context(), c, BackupOptions{To: "-"}, out, notes))
	require.Contains(t, notes.String(), "-: etcd at revision 42")
	unpack(t, out.Bytes())

	folder := t.TempDir()
	old := backup.NameAt(time.Now().Add(-time.Hour), true)
	for _, name := range []string{old, "mine"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), nil, 0o600))
	}
	out.Reset()
	require.NoError(t, Backup(t.Context(), c, BackupOptions{To: folder, Keep: 1}, out, io.Discard))
	require.Contains(t, out.String(), old+": removed\n")
	names := filesIn(t, folder)
	require.Len(t, names, 2)
	require.Contains(t, names, "mine")

	identity, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	out.Reset()
	o := BackupOptions{To: "-", EncryptTo: []string{identity.Recipient().String()}}
	require.NoError(t, Backup(t.Context(), c, o, out, io.Discard))
	_, err = backup.Unpack(bytes.NewReader(out.Bytes()), t.TempDir(), nil)
	require.ErrorContains(t, err, "decrypt it first")
	plain, err := age.Decrypt(out, identity)
	require.NoError(t, err)
	raw, err = io.ReadAll(plain)
	require.NoError(t, err)
	unpack(t, raw)

	require.Equal(t, 2, testutil.CollectAndCount(b))
	require.Greater(t, b.stored.Bytes, int64(1<<20))
	require.WithinDuration(t, time.Now(), b.stored.Time, time.Minute)
	raw, err = os.ReadFile(b.file)
	require.NoError(t, err)
	require.Contains(t, string(raw), b.stored.Time.Format(time.RFC3339Nano))
}

func TestBackup_leavesNoFileThatIsNotWhole(t *testing.T) {
	t.Parallel()
	r, size := storeOf(1 << 20)
	for name, c := range map[string]struct {
		etcd func(ctx context.Context, write func(revision, size int64, r io.Reader) error) error
		says string
	}{
		"etcd fails": {func(_ context.Context, write func(revision, size int64, r io.Reader) error) error {
			return errors.Join(write(1, int64(size), r), errors.New("etcd is\nfull"))
		}, "the running hub says: save etcd: etcd is full"},
		"the hub is killed": {func(_ context.Context, write func(revision, size int64, r io.Reader) error) error {
			part, _ := storeOf(1 << 20)
			_ = write(1, 2<<20, part)
			panic(http.ErrAbortHandler)
		}, "unexpected EOF"},
	} {
		config := verifying(t)
		b := newSaved(t, config, nil, 0)
		b.source.Etcd = c.etcd
		serving(t, config, b.mux().ServeHTTP)
		dir := t.TempDir()
		require.ErrorContains(t, Backup(t.Context(), config, BackupOptions{To: filepath.Join(dir, "file")}, io.Discard, io.Discard), c.says, name)
		require.ErrorContains(t, Backup(t.Context(), config, BackupOptions{To: filepath.Join(dir, "none", "file")}, io.Discard, io.Discard), "no such file")
		require.Empty(t, filesIn(t, dir), name)
		require.Zero(t, testutil.CollectAndCount(b), name)
	}
}

// A defragmentation of etcd ends a snapshot, and the next one begins after it.
func TestBackup_beginsAgainAfterADefragmentation(t *testing.T) {
	t.Parallel()
	c := verifying(t)
	b := newSaved(t, c, nil, 0)
	attempts, failing := 0, 1
	b.source.Etcd = func(_ context.Context, write func(revision, size int64, r io.Reader) error) error {
		r, size := storeOf(1 << 10)
		if attempts++; attempts <= failing {
			return errors.Join(write(42, int64(size), r), errs.New(errs.Unavailable, "etcd has to be defragmented"))
		}
		return write(42, int64(size), r)
	}
	b.source.Records = func(context.Context, func(int64, io.Reader) error) error { return errors.New("there is\nno room") }
	serving(t, c, b.mux().ServeHTTP)
	file := filepath.Join(t.TempDir(), "file")
	out, notes := &strings.Builder{}, &strings.Builder{}
	require.NoError(t, Backup(t.Context(), c, BackupOptions{To: file}, out, notes))
	require.Contains(t, notes.String(), "etcd has to be defragmented")
	require.Contains(t, notes.String(), "it begins again\n")
	require.Contains(t, notes.String(), "warning: the records database is left out: there is no room\n")
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	unpack(t, raw)
	for to, want := range map[string]int{"-": 1, file: maxAttempts} {
		attempts, failing = 0, 100
		require.ErrorContains(t, Backup(t.Context(), c, BackupOptions{To: to}, io.Discard, io.Discard), "has to be defragmented")
		require.Equal(t, want, attempts, to)
	}
}

// endless is a store that ends when the test does.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestBackup_endsWithItsReader(t *testing.T) {
	t.Parallel()
	c := verifying(t)
	b := newSaved(t, c, endless{}, 1<<50)
	ended, handler := make(chan struct{}, 1), b.mux()
	serving(t, c, func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r)
		ended <- struct{}{}
	})
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	begun, to := io.Pipe()
	go func() { failed <- Backup(ctx, c, BackupOptions{To: "-"}, to, io.Discard) }()
	_, err := begun.Read(make([]byte, 1))
	require.NoError(t, err)
	// While it is under way nobody gets another one.
	require.ErrorContains(t, Backup(t.Context(), c, BackupOptions{To: filepath.Join(dir, "file")}, io.Discard, io.Discard), "another backup is under way")
	<-ended
	cancel()
	go func() { _, _ = io.Copy(io.Discard, begun) }()
	require.ErrorIs(t, <-failed, context.Canceled)
	<-ended
	require.Empty(t, filesIn(t, dir))
	b.running.Lock()
	defer b.running.Unlock()
	require.True(t, b.sent.Time.IsZero())
}

// A file on a full disk is in test/e2e.
func TestBackup_saysWhatToDoAboutAFullDisk(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a device that is always full")
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer func() { _ = full.Close() }()
	identity, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	for _, recipients := range [][]string{nil, {identity.Recipient().String()}} {
		c := verifying(t)
		r, size := storeOf(1 << 20)
		b := newSaved(t, c, r, size)
		serving(t, c, b.mux().ServeHTTP)
		err := Backup(t.Context(), c, BackupOptions{To: "-", EncryptTo: recipients}, full, io.Discard)
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.ErrorContains(t, err, "what was written is none: remove it, and repeat this with more room")
		b.running.Lock()
		require.Zero(t, testutil.CollectAndCount(b), "it was not stored")
		b.running.Unlock()
	}
}

func TestBackup_saysWhyThereIsNone(t *testing.T) {
	t.Parallel()
	run := func(c Config, o BackupOptions) error { return Backup(t.Context(), c, o, io.Discard, io.Discard) }
	require.ErrorContains(t, run(verifying(t), BackupOptions{To: "-"}), "no hub runs with this --data-dir; start it first")
	require.ErrorIs(t, run(verifying(t), BackupOptions{To: "-", Keep: 1}), errNotFolder)
	identity, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	err = run(verifying(t), BackupOptions{To: "-", EncryptTo: []string{identity.String()}})
	require.ErrorContains(t, err, "--encrypt-to: number 1 is no public key")
	require.NotContains(t, err.Error(), identity.String(), "a private key by mistake")
	external := verifying(t, func(o *Options) {
		o.KCPKubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
		require.NoError(t, os.WriteFile(o.KCPKubeconfig, nil, 0o600))
	})
	require.ErrorContains(t, run(external, BackupOptions{To: "-"}), "deploy/README.md")
}

func TestBackups_rememberTheLastOneOverARestart(t *testing.T) {
	t.Parallel()
	c := verifying(t)
	for content, want := range map[string]string{`{"time":"2026-11-24T02:00:00Z","bytes":7}`: "", "garbage": "read the time of the last backup"} {
		require.NoError(t, os.WriteFile(filepath.Join(c.DataDir, "backup.json"), []byte(content), 0o600))
		log := audit.New(t.Context(), io.Discard)
		a := &assembly{hub: &hub{config: c, embedded: neverReady{}, audit: log, registry: prometheus.NewRegistry()}}
		b, err := a.newBackups()
		if want != "" {
			require.ErrorContains(t, err, want)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, 2, testutil.CollectAndCount(b))
		require.Equal(t, log.Heads()[0].Replica, b.source.Replica)
		heads, ended, err := b.source.Heads(t.Context())
		require.NoError(t, err)
		require.Empty(t, ended)
		require.Equal(t, log.Heads(), heads)
	}
}

func TestRoomIn_leavesSomeToOthers(t *testing.T) {
	t.Parallel()
	require.NoError(t, roomIn(t.TempDir())(1))
	require.ErrorContains(t, roomIn(t.TempDir())(1<<60), "has no room")
}

// neverReady is an embedded kcp that is not asked.
type neverReady struct{ connect.KCP }

package backup_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/backup"
)

const (
	database = "the database of etcd"
	records  = "the records"
)

// hashed is content as etcd sends a snapshot of it.
func hashed(content string) string {
	sum := sha256.Sum256([]byte(content))
	return content + string(sum[:])
}

// put makes the files of a folder.
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
}

// get returns the files of a folder. Folders in it have mode 0700 and files 0600.
func get(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		if d.IsDir() {
			require.True(t, name == dir || info.Mode().Perm() == 0o700, name)
			return nil
		}
		require.Equal(t, os.FileMode(0o600), info.Mode(), name)
		raw, err := os.ReadFile(name)
		require.NoError(t, err)
		name, err = filepath.Rel(dir, name)
		require.NoError(t, err)
		files[filepath.ToSlash(name)] = string(raw)
		return nil
	}))
	return files
}

// saved are the files of a data folder that a restored hub needs.
func saved() map[string]string {
	return map[string]string{
		"tls/ca.crt": "ca", "tls/ca.key": "key", "kcp/sa.key": "sa", "kcp/.admin-token-store": "token", "kcp/ports.json": "{}",
		"kcp/etcd-server/secrets/ca/key.pem": "etcd",
	}
}

// newSource returns a hub that has saved, and what no backup has.
func newSource(t *testing.T, change ...func(*backup.Source)) backup.Source {
	t.Helper()
	dir := t.TempDir()
	put(t, dir, saved())
	put(t, dir, map[string]string{
		"audit/rights.jsonl": "{}", "run/x": "", "kcp/lock": "", "kcp/issuers.json.new": "", "tls/.new-1": "", "records/records.db-wal": "",
		"kcp/etcd-server/member/snap/db": "not this one", "kcp/etcd-server/other": "", "backup.json": "{}", "tokens.csv": "",
	})
	s := backup.Source{
		Dir: dir, Hub: "v1.2.3", KCP: "v0.32.3", Replica: "r",
		Now: func() time.Time { return time.Date(2026, 11, 24, 3, 0, 0, 5, time.FixedZone("", 3600)) },
		Heads: func(context.Context) (own, ended []audit.Head, err error) {
			return []audit.Head{{Replica: "r", Log: audit.Rights, Seq: 7, Hash: "h"}}, []audit.Head{{Replica: "lost", Log: audit.Rights, Seq: 9, Hash: "i"}}, nil
		},
		Etcd: func(_ context.Context, write func(revision, size int64, r io.Reader) error) error {
			return write(42, int64(len(hashed(database))), strings.NewReader(hashed(database)))
		},
		Records: func(_ context.Context, write func(size int64, r io.Reader) error) error {
			return write(int64(len(records)), strings.NewReader(records))
		},
	}
	for _, f := range change {
		f(&s)
	}
	return s
}

// write returns an archive, and what is in it.
func write(t *testing.T, s backup.Source) ([]byte, backup.Manifest) {
	t.Helper()
	out := &bytes.Buffer{}
	m, err := backup.Write(t.Context(), out, s)
	require.NoError(t, err)
	return out.Bytes(), m
}

// restoreEtcd does as etcd does.
func restoreEtcd(snapshot, etcdDir string) error {
	raw, err := os.ReadFile(snapshot)
	if err != nil {
		return err
	}
	to := filepath.Join(etcdDir, "member")
	return errors.Join(os.MkdirAll(to, 0o700), os.WriteFile(filepath.Join(to, "db"), raw[:len(raw)-sha256.Size], 0o600))
}

func TestUnpack_hasWhatWasWritten(t *testing.T) {
	t.Parallel()
	raw, m := write(t, newSource(t))
	require.Equal(t, backup.Format, m.Format)
	require.Equal(t, "2026-11-24T02:00:00.000000005Z", m.Time.Format(time.RFC3339Nano))
	require.EqualValues(t, 42, m.Etcd.Revision)
	require.Len(t, m.Files, len(saved())+2)
	manifest, err := json.MarshalIndent(m, "", "  ")
	require.NoError(t, err)
	want := saved()
	want["kcp/etcd-server/member/db"], want["records/records.db"], want[backup.ManifestFile] = database, records, string(manifest)

	compressed := &bytes.Buffer{}
	z := gzip.NewWriter(compressed)
	_, err = z.Write(raw)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	parent := t.TempDir()
	empty, volume, killed := filepath.Join(parent, "empty"), filepath.Join(parent, "volume"), filepath.Join(parent, "killed")
	require.NoError(t, os.Mkdir(empty, 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(volume, "lost+found"), 0o700))
	put(t, killed, map[string]string{backup.Partial + "/kcp/sa.key": "half"})
	require.ErrorContains(t, backup.Whole(killed), "was interrupted")
	for dir, raw := range map[string][]byte{
		empty: raw, volume: raw, killed: raw, filepath.Join(parent, "none"): compressed.Bytes(),
	} {
		got, err := backup.Unpack(bytes.NewReader(raw), dir, restoreEtcd)
		require.NoError(t, err, dir)
		require.Equal(t, m, got)
		require.Equal(t, want, get(t, dir))
		require.NoError(t, backup.Whole(dir))
	}
}

// What people have is in etcd: the records are left out where there is no room for a copy of them.
func TestWrite_withoutRecords(t *testing.T) {
	t.Parallel()
	for says, f := range map[string]func(context.Context, func(int64, io.Reader) error) error{
		"":                 nil,
		"there is no room": func(context.Context, func(int64, io.Reader) error) error { return errors.New("there is no room") },
	} {
		raw, _ := write(t, newSource(t, func(s *backup.Source) { s.Records = f }))
		dir := t.TempDir()
		m, err := backup.Unpack(bytes.NewReader(raw), dir, restoreEtcd)
		require.NoError(t, err)
		require.Equal(t, says, m.RecordsLeftOut)
		require.NotContains(t, get(t, dir), "records/records.db")
	}
}

func TestWrite_ofAHubThatFailsIsNoBackup(t *testing.T) {
	t.Parallel()
	failed := errors.New("it failed")
	etcd := func(size int64, content string, err error) func(*backup.Source) {
		return func(s *backup.Source) {
			s.Etcd = func(_ context.Context, write func(revision, size int64, r io.Reader) error) error {
				return errors.Join(write(1, size, strings.NewReader(content)), err)
			}
		}
	}
	whole := hashed(database)
	link := func(name string) func(*backup.Source) {
		return func(s *backup.Source) {
			require.NoError(t, os.RemoveAll(filepath.Join(s.Dir, name)))
			require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(s.Dir, name)))
		}
	}
	for name, c := range map[string]struct {
		change func(*backup.Source)
		says   string
	}{
		"heads": {func(s *backup.Source) {
			s.Heads = func(context.Context) (own, ended []audit.Head, err error) { return nil, nil, failed }
		}, "it failed"},
		"etcd":                  {etcd(int64(len(whole)), whole, failed), "it failed"},
		"etcd ends early":       {etcd(int64(len(whole))+1, whole, nil), "ends after"},
		"etcd has another hash": {etcd(int64(len(whole)), strings.ToUpper(whole), nil), "does not have the hash"},
		"etcd has no hash":      {etcd(int64(len(database)), database, nil), "has no hash"},
		"etcd is empty":         {etcd(0, "", nil), "has no hash"},
		"records": {func(s *backup.Source) {
			s.Records = func(_ context.Context, write func(int64, io.Reader) error) error {
				return errors.Join(write(1, strings.NewReader("r")), failed)
			}
		}, "it failed"},
		"a key that is a link":  {link("kcp/sa.key"), "kcp/sa.key is no regular file"},
		"a folder that is one":  {link("kcp"), "kcp is no folder"},
		"a folder of secrets":   {link("kcp/etcd-server/secrets/ca"), "is no regular file"},
		"a file far too large":  {func(s *backup.Source) { put(t, s.Dir, map[string]string{"kcp/large": strings.Repeat("x", 5<<20)}) }, "has more than"},
		"a folder that is none": {func(s *backup.Source) { s.Dir = filepath.Join(s.Dir, "nowhere") }, "no such file"},
	} {
		out := &bytes.Buffer{}
		_, err := backup.Write(t.Context(), out, newSource(t, c.change))
		require.ErrorContains(t, err, c.says, name)
		requireRefused(t, name, out.Bytes(), "")
	}
}

// fullDisk takes some bytes and then no more.
type fullDisk struct{ room int }

func (f *fullDisk) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, errors.New("no space left on device")
	}
	return len(p), nil
}

func TestWrite_toAReaderThatGoesAway(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	raw, _ := write(t, s)
	for _, room := range []int{0, 512, 2048, len(raw) / 2, len(raw) - 1} {
		_, err := backup.Write(t.Context(), &fullDisk{room: room}, s)
		require.ErrorContains(t, err, "no space left", "%d bytes", room)
	}
}
